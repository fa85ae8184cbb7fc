/* What concerns the whole policy: undo and redo, the list of changes, temperature and metric. */

import { on, send } from "./connection.js";
import { control } from "./control.js";
import { $, allow, brief, exact, make, mark, onPress, plural, write } from "./dom.js";
import { around } from "./scales.js";
import { studio } from "./store.js";

let temperature = null, metric = [], quiet = false;

export const undo = () => $("undo").click();
export const redo = () => $("redo").click();

/** Sliders for closeness, made once the original values are known: they are centred on these. */
const build = ({ original }) => {
  const { features, limits } = studio.hello, anything = [1e-6, 1e6];
  const line = (title, dial, ...more) => [make("span", { className: "who", textContent: title, title }), dial.slider, dial.number, ...more];
  temperature = control({
    label: "temperature",
    scale: around(original.temperature, limits?.temperature ?? anything),
    set: (value, final) => send({ type: "set", part: "temperature", value, final }),
    attributes: { "data-part": "temperature" },
    field: { "data-exact": "temperature" },
  });
  $("temperature").replaceChildren(...line("temperature", temperature));
  metric = features.map((feature, index) => {
    const dial = control({
      label: `factor of ${feature}`,
      scale: around(original.metric[index], limits?.metric ?? anything),
      set: (value, final) => send({ type: "set", part: "metric", index, value, final }),
      attributes: { "data-part": "metric", "data-index": index },
      field: { "data-exact": "metric", "data-index": index },
    });
    const radius = make("span", { className: "note figure" });
    return { ...dial, radius, node: make("div", { className: "dial with-radius" }, ...line(feature, dial, radius)) };
  });
  $("metric").replaceChildren(...metric.map(({ node }) => node));
};

const offer = (button, word, what) => {
  allow(button, what !== null && what !== undefined);
  mark(button, "title", what ? `${word}: ${what}` : "Nothing there");
  mark(button, "aria-label", what ? `${word}: ${what}` : word);
};

/** Numbers as people read them: a slider's are round, those of training are not. */
const rounded = (text) => text.replace(/-?\d+\.\d{5,}(e-?\d+)?/g, (digits) => exact(Number(digits)));

const list = (changes, silent) => {
  const count = changes.length ? plural(changes.length, "change") + " by hand" : "No changes";
  write($("changes-count"), silent ? `${count}, ${plural(silent, "expert")} silent` : count);
  const shown = [...$("change-list").children].map((item) => item.textContent);
  if (shown.length === changes.length && shown.every((text, i) => text === changes[i])) return;
  $("change-list").replaceChildren(...changes.map((text) => make("li", { textContent: text })));
};

on("policy", (policy) => {
  if (!temperature) build(policy);
  temperature.show(policy.temperature);
  metric.forEach(({ show, radius }, j) => {
    show(policy.metric[j]);
    write(radius, `close: ±${brief(policy.radii[j])}`);
  });
  offer($("undo"), "Undo", policy.undo);
  offer($("redo"), "Redo", policy.redo);
  list(policy.changes.map(rounded), policy.silent);
  allow($("original"), policy.changes.length > 0);
  write($("state"), policy.unsaved ? "not saved" : "");
});

on("hello", ({ title, task, algorithm, steps, joints, default_action: rest }) => {
  write($("rest"), rest.every((value) => value === 0) ? "all zero" : joints.map((joint, j) => `${joint} ${brief(rest[j])}`).join(", "));
  write($("task"), task);
  write($("about"), `${title} · learned from ${steps.toLocaleString("en")} steps by ${algorithm}`);
  document.title = `${task}: moie studio`;
});
on("lost", () => { quiet = true; });

onPress($("undo"), () => send({ type: "undo" }));
onPress($("redo"), () => send({ type: "redo" }));
onPress($("original"), () => send({ type: "original" }));
$("add").addEventListener("click", () => send({ type: "add" }));
addEventListener("beforeunload", (event) => { if (studio.policy?.unsaved && !quiet) event.preventDefault(); });
