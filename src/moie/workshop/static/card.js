/* The card of one expert: its picture, and everything that a hand may change. */

import { send } from "./connection.js";
import { control } from "./control.js";
import { exact, make, mark, paint, percent, write } from "./dom.js";
import { linear, weights } from "./scales.js";
import { number, studio } from "./store.js";

const toggle = (className, text, label, id) => {
  const button = make("button", { type: "button", className, textContent: text, "aria-label": `${label} expert ${id}`, "aria-pressed": "false" });
  button.addEventListener("click", () => send({ type: className, expert: id, on: button.getAttribute("aria-pressed") !== "true" }));
  return button;
};

/** A text that is sent when it is done, and never changed while someone writes. */
const labelField = (id) => {
  const field = make("input", { type: "text", placeholder: "no label", autocomplete: "off", maxLength: 60, "data-part": "label", "aria-label": `label of expert ${id}` });
  let writing = false, known = "";
  field.addEventListener("input", () => { writing = true; });
  field.addEventListener("change", () => {
    writing = false;
    if (field.value !== known) send({ type: "set", part: "label", expert: id, value: field.value, final: true });
  });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { writing = false; field.value = known; }
  });
  const show = (label) => {
    known = label ?? "";
    if (!writing && field.value !== known) field.value = known;
  };
  return { field, show };
};

/** The sliders for the action, and the one for the weight. */
const dials = (id) => {
  const { joints, low, high, limits } = studio.hello;
  const line = (title, dial) => make("div", { className: "dial" }, make("span", { className: "who", textContent: title, title }), dial.slider, dial.number);
  const actions = joints.map((joint, index) => control({
    label: `action ${joint} of expert ${id}`,
    scale: linear(low[index], high[index]),
    set: (value, final) => send({ type: "set", part: "action", expert: id, index, value, final }),
    attributes: { "data-part": "action", "data-index": index },
    field: { "data-exact": "action", "data-index": index },
  }));
  const weight = control({
    label: `weight of expert ${id}`,
    scale: weights(studio.policy.experts.map((expert) => expert.weight), limits?.weight ?? [0, 1e6]),
    set: (value, final) => send({ type: "set", part: "weight", expert: id, value, final }),
    attributes: { "data-part": "weight" },
    field: { "data-exact": "weight", min: 0 },
  });
  const lines = actions.map((dial, j) => line(joints[j], dial));
  return { actions, weight, lines, weightLine: line("weight", weight) };
};

/** The prototype as numbers; made only when it is opened, since there may be many. */
const prototypeList = (id) => {
  const node = make("details", { className: "prototype" }, make("summary", { textContent: "Prototype" }));
  let fields = null, known = [];
  const show = (prototype) => {
    known = prototype;
    fields?.forEach((field, j) => {
      if (field !== document.activeElement || !field.dataset.writing) field.value = exact(prototype[j]);
    });
  };
  const build = () => {
    if (fields) return;
    fields = studio.hello.features.map((feature, index) => {
      const field = make("input", { type: "number", step: "0.01", "data-part": "prototype", "data-index": index, "aria-label": `prototype ${feature} of expert ${id}` });
      field.addEventListener("input", () => { field.dataset.writing = "yes"; });
      field.addEventListener("blur", () => { delete field.dataset.writing; });
      field.addEventListener("change", () => {
        delete field.dataset.writing;
        const value = Number(field.value);
        if (field.value === "" || !Number.isFinite(value)) field.value = exact(known[index]);
        else send({ type: "set", part: "prototype", expert: id, index, value, final: true });
      });
      node.append(make("label", { className: "feature" }, make("span", { textContent: feature }), field));
      return field;
    });
    show(known);
  };
  node.addEventListener("toggle", () => node.open && build());
  return { node, show };
};

/** Notes on an expert, in words: where it comes from, what a hand has set, what cannot be carried out as written. */
const remarks = ({ origin, use, changed, action }) => {
  const { low, high } = studio.hello;
  const isAdded = changed.includes("added"), said = isAdded ? ["added by hand"] : [use, origin].filter(Boolean);
  if (!isAdded && changed.length) said.push(`set by hand: ${changed.join(", ")}`);
  if (action.some((value, j) => value < low[j] || value > high[j])) said.push("its action lies outside the range and is cut off at the end");
  return said.join(" · ");
};

/** `first` is the prototype of which there is a picture. */
export const card = (id, first) => {
  const title = make("span"), badge = make("small");
  const swatch = make("span", { className: "swatch" });
  const picture = make("img", { alt: "", hidden: true }), without = make("span", { className: "note", textContent: "picture follows" });
  const label = labelField(id), { actions, weight, lines, weightLine } = dials(id), prototype = prototypeList(id);
  const fill = make("i"), share = make("span", { className: "figure" });
  const mute = toggle("mute", "Mute", "Mute", id), solo = toggle("solo", "Solo", "Solo", id);
  const remove = make("button", { type: "button", className: "delete", textContent: "Delete", "aria-label": `Delete expert ${id}` });
  const note = make("p", { className: "note origin" });
  remove.addEventListener("click", () => send({ type: "delete", expert: id }));

  const node = make("article", { className: "card", "data-expert": id, "aria-label": number(id) },
    make("div", { className: "top" },
      make("div", { className: "portrait" }, picture, without),
      make("div", { className: "head" },
        make("h3", {}, swatch, title, " ", badge),
        label.field,
        make("div", { className: "share" }, make("div", { className: "track" }, fill), share),
        make("div", { className: "switches" }, mute, solo, remove))),
    make("div", { className: "dials" }, ...lines, weightLine),
    note, prototype.node);

  let portrait = null, moved = false;
  const drawPortrait = () => {
    const image = moved ? null : portrait?.image;
    picture.hidden = !image;
    without.hidden = Boolean(image);
    if (image && picture.src !== image) { picture.src = image; picture.alt = `The prototype of expert ${id}`; }
    const why = moved ? "moved by hand: it was never visited" : portrait ? portrait.problem ?? "no picture" : "picture follows";
    write(without, image ? "" : why);
  };
  const show = (expert) => {
    const called = number(id);
    write(title, called[0].toUpperCase() + called.slice(1));
    paint(node, "--c", expert.colour);
    label.show(expert.label);
    expert.action.forEach((value, j) => actions[j].show(value));
    weight.show(expert.weight);
    prototype.show(expert.prototype);
    mark(mute, "aria-pressed", expert.muted);
    mark(solo, "aria-pressed", expert.solo);
    node.classList.toggle("silent", expert.silent);
    node.classList.toggle("changed", expert.changed.length > 0);
    write(note, remarks(expert));
    moved = expert.prototype.some((value, j) => value !== first[j]);
    drawPortrait();
  };
  /** How much it acts now. */
  const act = (value, leads) => {
    paint(fill, "width", `${(100 * Math.max(0, value)).toFixed(2)}%`);
    write(share, percent(value));
    write(badge, node.classList.contains("silent") ? "silent" : leads ? "leads" : "");
    node.classList.toggle("leads", leads);
  };
  const portray = (one) => { portrait = one; drawPortrait(); };
  return { node, show, act, portray };
};
