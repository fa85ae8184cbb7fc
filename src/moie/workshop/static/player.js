/* Play, pause, step, start again, speed, and the push. */

import { on, send } from "./connection.js";
import { $, make, mark, paint, write } from "./dom.js";
import { studio } from "./store.js";

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
  send({ type: "push", direction: $("push-direction").value, strength: Number($("push-strength").value) });
};

const sayStrength = () => {
  const text = `${Number($("push-strength").value).toFixed(1)} × its weight`;
  write($("push-said"), text);
  mark($("push-strength"), "aria-valuetext", text);
  paint($("push-strength"), "--to", ((Number($("push-strength").value) - 0.1) / 4.9).toFixed(4));
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
});
on("simulator", ({ pushes }) => { if (pushes) offerPushes(pushes); });

on("playing", ({ on: playing, speed, actions, loop }) => {
  write($("play"), playing ? "Pause" : "Play");
  mark($("play"), "aria-pressed", playing);
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
sayStrength();
