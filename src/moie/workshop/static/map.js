/* The map: who leads as two features move and all others stay. */

import { asker } from "./asking.js";
import { on } from "./connection.js";
import { $, brief, make, mark, oncePerFrame, sharpen, themed, whenThemeChanges, write } from "./dom.js";
import { colour, ink, name, short, studio } from "./store.js";
import { isOpen, ranges, suppose, supposed } from "./whatif.js";

const EDGE = { left: 54, right: 12, top: 10, bottom: 42 };
const picture = document.createElement("canvas");
let map = null, chosen = false, grip = null, who = [], how = [];

const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

/** Colours the map by its leaders, paler where the leader's share is small; returns how much of it each one leads. */
const colourIn = ({ width, height, leaders, shares, ids }) => {
  picture.width = width;
  picture.height = height;
  const pen = picture.getContext("2d"), image = pen.createImageData(width, height);
  const area = new Map();
  [who, how] = [bytes(leaders), bytes(shares)];
  const colours = new Map([...ids, -1].map((id) => [id, rgb(ink(id))]));
  for (let i = 0; i < who.length; i++) {
    const id = who[i] === 255 ? -1 : ids[who[i]];
    image.data.set(colours.get(id), 4 * i);
    image.data[4 * i + 3] = 60 + 195 * how[i] / 255;
    area.set(id, (area.get(id) ?? 0) + 1 / who.length);
  }
  pen.putImageData(image, 0, 0);
  return [...area].sort((a, b) => b[1] - a[1]);
};

const frameOf = (canvas) => {
  const width = canvas.clientWidth - EDGE.left - EDGE.right, height = canvas.clientHeight - EDGE.top - EDGE.bottom;
  const { x_range: [left, right], y_range: [low, high] } = map;
  return {
    width, height,
    at: ([x, y]) => [EDGE.left + width * (x - left) / (right - left), EDGE.top + height * (high - y) / (high - low)],
    back: (px, py) => [left + (px - EDGE.left) / width * (right - left), high - (py - EDGE.top) / height * (high - low)],
  };
};

/** A number on an axis: next to nothing, measured by the axis, is zero. */
const onAxis = ([low, high], share) => {
  const value = low + share * (high - low);
  return brief(Math.abs(value) < 1e-3 * (high - low) ? 0 : value);
};

const axes = (pen, { width, height }) => {
  const { x_range: across, y_range: up } = map, { features } = studio.hello;
  const middle = EDGE.left + width / 2, bottom = EDGE.top + height;
  pen.strokeStyle = themed("--line");
  pen.strokeRect(EDGE.left - 0.5, EDGE.top - 0.5, width + 1, height + 1);
  pen.fillStyle = themed("--soft");
  pen.font = "12px system-ui, sans-serif";
  pen.textAlign = "center";
  for (const share of [0, 0.5, 1]) {
    pen.textAlign = share === 0 ? "left" : share === 1 ? "right" : "center";
    pen.fillText(onAxis(across, share), EDGE.left + share * width, bottom + 16);
    pen.textAlign = "right";
    pen.fillText(onAxis(up, share), EDGE.left - 6, bottom - share * height + (share === 0 ? 0 : share === 1 ? 10 : 4));
  }
  pen.fillStyle = themed("--ink");
  pen.textAlign = "center";
  pen.fillText(features[map.x], middle, bottom + 34, width);
  pen.save();
  pen.translate(12, EDGE.top + height / 2);
  pen.rotate(-Math.PI / 2);
  pen.fillText(features[map.y], 0, 0, height);
  pen.restore();
};

const inside = ([x, y], { width, height }) => [Math.min(EDGE.left + width, Math.max(EDGE.left, x)), Math.min(EDGE.top + height, Math.max(EDGE.top, y))];

/** A prototype as a ring with its number; one beyond the map is a small dot at its edge. */
const ring = (pen, id, point, frame) => {
  const exact = frame.at(point), [x, y] = inside(exact, frame), beyond = Math.hypot(x - exact[0], y - exact[1]) > 1;
  pen.beginPath();
  pen.arc(x, y, beyond ? 4 : 9, 0, 2 * Math.PI);
  pen.fillStyle = beyond ? ink(id) : themed("--card");
  pen.fill();
  pen.lineWidth = 2.5;
  pen.strokeStyle = beyond ? themed("--card") : ink(id);
  pen.stroke();
  if (beyond) return;
  pen.fillStyle = themed("--ink");
  pen.font = "600 11px system-ui, sans-serif";
  pen.textAlign = "center";
  pen.fillText(String(id), x, y + 4);
};

const cross = (pen, point, frame) => {
  const [x, y] = inside(frame.at(point), frame);
  for (const [width, tone] of [[6, "--card"], [2.5, "--ink"]]) {
    pen.lineWidth = width;
    pen.strokeStyle = themed(tone);
    pen.beginPath();
    pen.moveTo(x - 10, y);
    pen.lineTo(x + 10, y);
    pen.moveTo(x, y - 10);
    pen.lineTo(x, y + 10);
    pen.stroke();
  }
};

const draw = () => {
  if (!map || !$("map").clientWidth) return;
  const { pen, width, height } = sharpen($("map")), frame = frameOf($("map"));
  pen.clearRect(0, 0, width, height);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(picture, EDGE.left, EDGE.top, frame.width, frame.height);
  pen.lineWidth = 1;
  axes(pen, frame);
  for (const [id, point] of Object.entries(map.prototypes)) ring(pen, Number(id), point, frame);
  const state = supposed() ?? map.state;
  cross(pen, [state[map.x], state[map.y]], frame);
};

const hear = (answer) => {
  map = answer;
  const area = colourIn(map), { features } = studio.hello;
  const said = area.map(([id, share]) => `${name(id)} in ${share < 0.005 ? "less than 1" : Math.round(100 * share)}%`);
  mark($("map"), "aria-label", `Map of ${features[map.x]} across and ${features[map.y]} up. Who leads: ${said.join(", ")} of it.`);
  $("legend").replaceChildren(...area.map(([id, share]) => {
    const swatch = make("span", { className: "swatch" });
    swatch.style.backgroundColor = colour(id);
    return make("li", {}, swatch, `${id < 0 ? "default" : short(id)} ${(100 * share).toFixed(0)}%`);
  }));
  draw();
};

const put = asker("map", hear);
/** At first the two features whose usual range spans most of what counts as close. */
const choose = () => {
  const spans = ranges()?.map(([low, high], j) => [(high - low) / studio.policy.radii[j], j]).sort((a, b) => b[0] - a[0]);
  if (!spans || spans.length < 2) return;
  [$("map-x").value, $("map-y").value] = [spans[0][1], spans[1][1]];
  chosen = true;
};
const ask = () => {
  if (!chosen) choose();
  if (isOpen() && chosen) put({ x: Number($("map-x").value), y: Number($("map-y").value), state: supposed() });
};
const redraw = oncePerFrame(draw);

/** Moves the cross to the pointer. The scale is that of the moment when it was taken hold of. */
const point = (event) => {
  if (!map || !grip || !isOpen()) return;
  const box = $("map").getBoundingClientRect(), [x, y] = grip.back(event.clientX - box.left, event.clientY - box.top);
  const clip = (value, [low, high]) => Number(Math.min(high, Math.max(low, value)).toPrecision(4));
  suppose([[map.x, clip(x, grip.across)], [map.y, clip(y, grip.up)]]);
  redraw();
};

/** Says who leads under the pointer. */
const tellAt = (event) => {
  if (!map) return;
  const box = $("map").getBoundingClientRect(), [x, y] = frameOf($("map")).back(event.clientX - box.left, event.clientY - box.top);
  const { width, height, x_range: [left, right], y_range: [low, high] } = map, { features } = studio.hello;
  const column = Math.round((x - left) / (right - left) * (width - 1)), row = Math.round((high - y) / (high - low) * (height - 1));
  if (column < 0 || column >= width || row < 0 || row >= height) return write($("map-at"), "");
  const at = row * width + column, id = who[at] === 255 ? -1 : map.ids[who[at]];
  write($("map-at"), `${features[map.x]} ${brief(x)}, ${features[map.y]} ${brief(y)}: ${name(id)} leads with ${Math.round(how[at] / 2.55)}%`);
};

on("hello", ({ features }) => {
  for (const select of [$("map-x"), $("map-y")]) select.replaceChildren(...features.map((feature, j) => make("option", { value: j, textContent: feature })));
  $("map-section").hidden = features.length < 2;
});
on("supposed", ask);
on("what-if", () => { if (!chosen) ask(); });
/** The same feature twice would be no map: the other one takes the place of the one that was chosen. */
for (const [select, other, held] of [[$("map-x"), $("map-y"), "x"], [$("map-y"), $("map-x"), "y"]]) {
  select.addEventListener("change", () => {
    if (select.value === other.value) other.value = map?.[held] ?? (Number(select.value) + 1) % select.options.length;
    chosen = true;
    ask();
  });
}
$("map").addEventListener("pointerdown", (event) => {
  if (!map) return;
  $("map").setPointerCapture(event.pointerId);
  grip = { ...frameOf($("map")), across: map.x_range, up: map.y_range };
  point(event);
});
$("map").addEventListener("pointermove", (event) => {
  if (event.buttons) point(event);
  tellAt(event);
});
$("map").addEventListener("pointerleave", () => write($("map-at"), ""));
new ResizeObserver(redraw).observe($("map"));
whenThemeChanges(() => { if (map) hear(map); });
