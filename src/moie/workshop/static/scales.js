/* How the position of a slider becomes a value, and back. */

const within = (value, low, high) => Math.min(high, Math.max(low, value));
const digits = (value, count) => Number(value.toPrecision(count));

/** The step of a slider over this span: a power of ten, some hundred steps in all. */
const stepOver = (span) => 10 ** Math.floor(Math.log10(span / 100) + 1e-9);

/** Even steps over the range, at round numbers. Its ends can be reached even where they are no round numbers. */
export const linear = (low, high) => {
  const step = high > low ? stepOver(high - low) : 1;
  const round = (value) => digits(Math.round(value / step) * step, 12);
  return {
    min: low, max: high, zero: 0, step: "any", fine: step,
    value: (position) => (position <= low + step / 2 ? low : position >= high - step / 2 ? high : within(round(position), low, high)),
    position: (value) => within(value, low, high),
  };
};

/** Even steps of the logarithm, with the original value in the middle: from a fiftieth of it to fifty times it. */
export const around = (original, [low, high]) => {
  if (!(original > 0)) return logarithmic(Math.max(low, 0), Math.min(high, 1000));
  const reach = Math.log(50);
  return {
    min: -1, max: 1, zero: 0, step: "any", fine: stepOver(original),
    value: (position) => (Math.abs(position) < 0.01 ? original : within(digits(original * Math.exp(reach * position), 3), low, high)),
    position: (value) => (value > 0 ? within(Math.log(value / original) / reach, -1, 1) : -1),
  };
};

/** Even steps of the logarithm from low to high; where low is zero, it runs straight to it below the bend. */
export const logarithmic = (low, high, turn = 0.05) => {
  const bend = low > 0 ? 0 : turn;
  const down = (value) => Math.log(value + bend), start = down(low), span = down(high) - start || 1;
  return {
    min: 0, max: 1, step: "any", fine: 0.01,
    value: (position) => within(digits(Math.exp(start + span * position) - bend, 3), low, high),
    position: (value) => within((down(Math.max(value, low)) - start) / span, 0, 1),
  };
};

/** A scale for weights, from zero to well beyond the largest: they may differ by many powers of ten. */
export const weights = (all, [low, high]) => {
  const some = all.filter((weight) => weight > 0);
  const most = Math.max(1, ...some), least = Math.min(1, ...some);
  return logarithmic(low, Math.min(high, 10 * most), least / 10);
};
