/* Play, pause, step, start again, speed, and the push. */

import { on, send } from "./connection.js";
import { $, brief, make, mark, paint, write } from "./dom.js";
import { logarithmic } from "./scales.js";
import { studio } from "./store.js";

const STRENGTH = 0.2; /* of a push, at first: times the robot's weight */
const strengths = logarithmic(0.1, 5);

export const playOrPause = () => send({ type: studio.playing.on ? "pause" : "play" });
export const oneStep = () => send({ type: "step" });

/** Starts again with the seed in the field; a field that holds none counts as zero. */
export const startAgain = () => {
  const seed = Math.max(0, Math.trunc(Number($("seed").value)) || 0);
  $("seed").value = seed;
  send({ type: "restart", seed });
};

export const push = () => {
  if ($("push-box").hidden) return;
  send({ type: "push", direction: $("push-direction").value, strength: strengths.value(Number($("push-strength").value)) });
};

const sayStrength = () => {
  const position = Number($("push-strength").value), text = `${brief(strengths.value(position))} × weight`;
  write($("push-said"), text);
  mark($("push-strength"), "aria-valuetext", text);
  paint($("push-strength"), "--to", position.toFixed(4));
};

const choose = (select, value) => {
  if (document.activeElement === select && select.value === String(value)) return;
  if (![...select.options].some((option) => Number(option.value) === value || option.value === value)) {
    select.append(make("option", { value, textContent: `${value} ×` }));
  }
  select.value = value;
};

/** Offers the directions in which this robot can be pushed. The one that was chosen stays chosen. */
const offerPushes = (pushes) => {
  const select = $("push-direction"), before = select.value;
  $("push-box").hidden = pushes.length === 0;
  $("no-push").hidden = pushes.length > 0;
  select.replaceChildren(...pushes.map((way) => make("option", { value: way, textContent: way })));
  if (pushes.includes(before)) select.value = before;
};

on("hello", ({ pushes, seed }) => {
  $("seed").value = seed;
  if (pushes.length) offerPushes(pushes);
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) send({ type: "pause" });
});
on("simulator", ({ pushes }) => { if (pushes) offerPushes(pushes); });

on("playing", ({ on: playing, speed, actions, loop }) => {
  write($("play"), playing ? "Pause" : "Play");
  choose($("speed"), speed);
  choose($("actions"), actions);
  $("loop").checked = loop;
});

$("play").addEventListener("click", playOrPause);
$("screen").addEventListener("click", playOrPause);
$("step").addEventListener("click", oneStep);
$("restart").addEventListener("click", startAgain);
$("again").addEventListener("click", startAgain);
$("seed").addEventListener("keydown", (event) => { if (event.key === "Enter") startAgain(); });
$("speed").addEventListener("change", () => send({ type: "speed", value: Number($("speed").value) }));
$("actions").addEventListener("change", () => send({ type: "actions", kind: $("actions").value }));
$("loop").addEventListener("change", () => send({ type: "loop", on: $("loop").checked }));
$("push").addEventListener("click", push);
$("push-strength").addEventListener("input", sayStrength);
$("push-strength").value = strengths.position(STRENGTH);
sayStrength();
