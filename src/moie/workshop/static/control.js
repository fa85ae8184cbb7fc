/* A value that a hand can set: a slider, and a field beside it for the exact number. */

import { exact, make, mark, oncePerFrame, paint } from "./dom.js";

const KEYS = new Set(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End"]);
const PATIENCE = 600;

/**
 * Tells set(value, final) what the hand does: final is false while it moves (once per drawn frame) and true once at the end,
 * so that one movement is one step of undo, with the mouse as with a key held down.
 * show(value) says what the policy holds; it never moves what is under the hand.
 */
export const control = ({ label, scale, set, attributes = {}, field = {} }) => {
  const slider = make("input", { type: "range", min: scale.min, max: scale.max, step: scale.step, "aria-label": label, ...attributes });
  const number = make("input", { type: "number", step: scale.fine, inputMode: "decimal", "aria-label": `${label}, exact value`, ...field });
  let known = null, moving = false, key = false, typing = false, sent = null, patience = 0;

  /* The coloured part of the slider runs from zero, or from the original value, to the thumb. */
  const share = (position) => (position - scale.min) / (scale.max - scale.min || 1);
  const fill = () => paint(slider, "--to", share(Number(slider.value)).toFixed(4));
  paint(slider, "--from", scale.zero === undefined ? "-0.1" : share(Math.min(scale.max, Math.max(scale.min, scale.zero))).toFixed(4));

  const draw = (value, parts) => {
    if (parts.slider) slider.value = scale.position(value);
    fill();
    if (parts.number) number.value = exact(value);
    mark(slider, "aria-valuetext", exact(value));
    mark(slider, "data-value", value);
  };
  const settle = () => {
    clearTimeout(patience);
    sent = null;
    if (!moving && known !== null) draw(known, { slider: true, number: !typing });
  };
  const report = (value, final) => {
    sent = value;
    draw(value, { number: true, slider: false });
    set(value, final);
    clearTimeout(patience);
    if (final) patience = setTimeout(settle, PATIENCE);
  };
  const read = () => scale.value(Number(slider.value));
  const whileMoving = oncePerFrame(() => moving && report(read(), false));
  const finish = () => {
    if (!moving) return;
    moving = false;
    report(read(), true);
  };

  slider.addEventListener("input", () => { moving = true; whileMoving(); });
  slider.addEventListener("change", () => { if (!key) finish(); });
  for (const end of ["pointerup", "pointercancel", "blur"]) slider.addEventListener(end, () => { key = false; finish(); });
  slider.addEventListener("keydown", (event) => {
    if (!KEYS.has(event.key)) return;
    key = true;
    const jump = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 }[event.key];
    if (jump === undefined) return;
    event.preventDefault();
    slider.value = Number(slider.value) + jump * (scale.max - scale.min) / 100;
    moving = true;
    whileMoving();
  });
  slider.addEventListener("keyup", () => { key = false; finish(); });

  number.addEventListener("input", () => { typing = true; });
  number.addEventListener("change", () => {
    typing = false;
    if (number.value === "" || !Number.isFinite(Number(number.value))) return settle();
    sent = Number(number.value);
    slider.value = scale.position(sent);
    report(sent, true);
  });
  number.addEventListener("blur", () => { typing = false; if (sent === null) settle(); });

  const show = (value) => {
    if (value === known && sent === null) return;
    known = value;
    if (moving || (sent !== null && Math.abs(value - sent) > 1e-6 * Math.max(1, Math.abs(sent)))) return;
    settle();
  };
  return { slider, number, show, held: () => moving };
};
