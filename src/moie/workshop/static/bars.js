/* Bars for memberships, distances and actions, beside the picture and under "what if". */

import { brief, make, mark, paint, percent, signed, write } from "./dom.js";
import { colour, ids, isSilent, name, short } from "./store.js";

const row = (attribute, value, cells) => {
  const fill = make("i");
  const track = make("div", { className: "track" }, fill);
  const label = make("span", { className: "who" });
  const numbers = Array.from({ length: cells }, () => make("span", { className: "figure" }));
  const node = make("div", { className: "row", [attribute]: value }, label, track, ...numbers);
  return { node, label, track, fill, numbers };
};

/**
 * A bar for each expert and one for the default. The order stays that of the policy: bars that change places
 * sixty times a second cannot be followed. The leader is marked instead.
 */
export const memberBars = (box, attribute) => {
  const rows = new Map();
  const place = (key, at) => {
    if (!rows.has(key)) rows.set(key, row(attribute, key, 2));
    const { node } = rows.get(key);
    if (box.children[at] !== node) box.insertBefore(node, box.children[at] ?? null);
  };
  const arrange = () => {
    const wanted = [...ids().map(String), "default"];
    wanted.forEach(place);
    for (const [key, { node }] of rows) {
      if (!wanted.includes(key)) { node.remove(); rows.delete(key); }
    }
    for (const [key, { label, fill, node }] of rows) {
      const id = key === "default" ? -1 : Number(key);
      write(label, id < 0 ? "default" : short(id));
      mark(node, "title", isSilent(id) ? `${name(id)}, silent` : name(id));
      node.classList.toggle("silent", isSilent(id));
      paint(fill, "background-color", id < 0 ? "var(--soft)" : colour(id));
    }
  };
  const show = ({ memberships, default: rest, distances, leader }) => {
    for (const [key, { node, fill, numbers }] of rows) {
      const id = key === "default" ? -1 : Number(key);
      const share = id < 0 ? rest : memberships[key];
      if (share === undefined) continue;
      mark(node, "data-value", share);
      paint(fill, "width", `${(100 * Math.max(0, share)).toFixed(2)}%`);
      write(numbers[0], percent(share));
      write(numbers[1], id < 0 || distances?.[key] === undefined ? "" : brief(distances[key]));
      node.classList.toggle("leads", id === leader);
    }
  };
  return { arrange, show };
};

/** A bar for each joint, from zero to the action, within the range; a tick marks what was really done. */
export const actionBars = (box, attribute, joints, low, high) => {
  const at = (value, j) => Math.min(1, Math.max(0, (value - low[j]) / (high[j] - low[j] || 1)));
  const rows = joints.map((joint, j) => {
    const made = row(attribute, j, 1);
    const zero = make("span", { className: "zero" }), taken = make("span", { className: "taken" });
    zero.style.left = `${100 * at(0, j)}%`;
    made.track.append(zero, taken);
    made.track.classList.add("signed");
    made.label.textContent = joint;
    made.node.title = joint;
    return { ...made, taken };
  });
  box.replaceChildren(...rows.map(({ node }) => node));
  return (action, done = null) => rows.forEach(({ node, fill, taken, numbers }, j) => {
    const from = at(0, j), to = at(action[j], j);
    mark(node, "data-value", action[j]);
    paint(fill, "left", `${(100 * Math.min(from, to)).toFixed(2)}%`);
    paint(fill, "width", `${(100 * Math.abs(to - from)).toFixed(2)}%`);
    write(numbers[0], signed(action[j]));
    taken.hidden = !done;
    if (done) paint(taken, "left", `${(100 * at(done[j], j)).toFixed(2)}%`);
  });
};
