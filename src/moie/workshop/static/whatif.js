/* What if: the features of the present state as sliders, and who would act. The studio computes; the page asks. */

import { asker } from "./asking.js";
import { actionBars, memberBars } from "./bars.js";
import { on, send, tell } from "./connection.js";
import { $, allow, exact, make, mark, onPress, oncePerFrame, paint, write } from "./dom.js";
import { leading } from "./live.js";
import { linear } from "./scales.js";
import { colour, ids, studio } from "./store.js";

const members = memberBars($("would-members"), "data-would-member");
let rows = [], action = () => {}, moved = null, spans = null;

export const isOpen = () => $("what-if").open && !studio.playing.on && Boolean(studio.frame);
/** The supposed state: the present one, until a hand moves a feature of it. */
export const supposed = () => moved ?? studio.frame?.state ?? null;
export const ranges = () => spans;

/** Moves features of the supposed state, given as pairs of index and value. */
export const suppose = (pairs) => {
  if (!isOpen()) return;
  moved = [...supposed()];
  for (const [j, value] of pairs) moved[j] = value;
  follow();
};

const share = (low, high, value) => (high > low ? Math.min(1, Math.max(0, (value - low) / (high - low))) : 0.5);

/** Colours over the range of a feature: who leads there. */
const strip = (profile, [low, high]) => {
  const at = (value) => `${(100 * share(low, high, value)).toFixed(2)}%`;
  return `linear-gradient(to right, ${profile.map(({ from, to, leader }) => `${colour(leader)} ${at(from)} ${at(to)}`).join(", ")})`;
};

const row = (feature, j) => {
  const slider = make("input", { type: "range", step: "any", "aria-label": `what if ${feature}`, "data-feature": j });
  const number = make("input", { type: "number", step: "0.01", "aria-label": `what if ${feature}, exact value`, "data-feature-exact": j });
  const colours = make("i", { className: "leaders" }), tick = make("i", { className: "tick" }), takeover = make("p", { className: "note", id: `takeover-${j}` });
  slider.setAttribute("aria-describedby", takeover.id);
  const node = make("div", { className: "supposition" }, make("span", { className: "who", textContent: feature }), number, slider,
    make("div", { className: "profile", "aria-hidden": "true" }, colours, tick), takeover);
  slider.addEventListener("input", () => spans && suppose([[j, linear(...spans[j]).value(Number(slider.value))]]));
  number.addEventListener("change", () => number.value !== "" && suppose([[j, Number(number.value)]]));
  return { node, slider, number, colours, tick, takeover };
};

/** Puts sliders and fields to the supposed state, but for the one that a hand is on. */
const place = () => {
  const state = supposed();
  if (!state || !spans) return;
  rows.forEach(({ slider, number, tick }, j) => {
    const [low, high] = spans[j];
    if (Number(slider.min) !== low || Number(slider.max) !== high) { slider.min = low; slider.max = high; }
    slider.disabled = !(high > low);
    if (slider !== document.activeElement || !moved) slider.value = state[j];
    mark(slider, "aria-valuetext", exact(state[j]));
    mark(slider, "data-value", state[j]);
    if (number !== document.activeElement || !moved) number.value = exact(state[j]);
    if (studio.frame) paint(tick, "left", `${(100 * share(low, high, studio.frame.state[j])).toFixed(2)}%`);
  });
  allow($("present"), moved !== null);
};

const sum = ({ memberships }) => ids().map((id) => {
  const part = make("i");
  part.style.width = `${100 * (memberships[id] ?? 0)}%`;
  part.style.backgroundColor = colour(id);
  return part;
});

/** The sliders' ranges stay as they are while a state is moved, lest they run away under the hand; a field may go beyond. */
const stretch = ({ ranges: told, state }) => {
  if (!spans || !moved) spans = told;
  else spans = spans.map(([low, high], j) => (state[j] < low || state[j] > high ? told[j] : [low, high]));
};

const hear = (answer) => {
  stretch(answer);
  members.show(answer);
  action(answer.action);
  write($("would-lead"), moved ? leading(answer).replace(" leads", " would lead") : leading(answer));
  paint($("would-swatch"), "background-color", colour(answer.leader));
  $("would-sum").replaceChildren(...sum(answer));
  rows.forEach(({ colours, takeover }, j) => {
    paint(colours, "background-image", strip(answer.profiles[j], spans[j]));
    write(takeover, answer.takeovers[j]);
  });
  place();
};

const put = asker("what-if", hear);
const askNow = () => {
  if (!isOpen()) return;
  put({ state: supposed() });
  tell({ type: "supposed" });
};
const ask = oncePerFrame(askNow);
const follow = () => { place(); ask(); };

const present = () => { moved = null; follow(); };
const wait = () => {
  $("what-if-wait").hidden = !studio.playing.on;
  $("features").disabled = studio.playing.on;
  $("supposing").classList.toggle("old", studio.playing.on);
};

on("hello", ({ features, joints, low, high }) => {
  rows = features.map(row);
  $("features").append(...rows.map(({ node }) => node));
  action = actionBars($("would-joints"), "data-would-joint", joints, low, high);
});
on("policy", () => { members.arrange(); ask(); });
on("playing", () => {
  wait();
  if (studio.playing.on) moved = null;
  ask();
});
on("shown", ({ frames }) => {
  if (studio.playing.on || !$("what-if").open) return;
  if (frames.at(-1).step === 0) moved = null;
  follow();
});
$("what-if").addEventListener("toggle", () => {
  if (!$("what-if").open) return;
  if (studio.playing.on) send({ type: "pause" });
  wait();
  present();
});
onPress($("present"), present);
