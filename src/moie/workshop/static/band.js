/* The band: what the action was made of, over the last steps of this episode. */

import { on } from "./connection.js";
import { $, mark, oncePerFrame, plural, sharpen, themed, whenThemeChanges, write } from "./dom.js";
import { ids, ink, name, studio } from "./store.js";

const LENGTH = 600;
const TALL = 100;
const APART = 10;

/* One column for each step, written once and over again after LENGTH steps. The default's share stays clear. */
const ring = document.createElement("canvas");
ring.width = LENGTH;
ring.height = TALL;
const brush = ring.getContext("2d");
let steps = [], columns = 0, episode = null;

const column = (entry, x) => {
  brush.clearRect(x, 0, 1, TALL);
  const order = [...ids(), ...Object.keys(entry.m).map(Number).filter((id) => !ids().includes(id))];
  let y = TALL;
  for (const id of order) {
    const tall = (entry.m[id] ?? 0) * TALL;
    brush.fillStyle = ink(id);
    brush.fillRect(x, y - tall, 1, tall);
    y -= tall;
  }
};

const take = (frame) => {
  const trail = frame.trail ?? [];
  let start = trail.length;
  while (start > 0 && trail[start - 1].step <= frame.step && (start === trail.length || trail[start - 1].step < trail[start].step)) start--;
  const fresh = trail.slice(start);
  if (frame.episode !== episode || (fresh.length && steps.length && fresh[0].step < steps.at(-1).step)) {
    steps = [];
    columns = 0;
  }
  episode = frame.episode;
  for (const entry of fresh) {
    if (steps.length && entry.step === steps.at(-1).step) {
      steps.pop();
      columns--;
    }
    steps.push(entry);
    column(entry, columns++ % LENGTH);
  }
  if (steps.length > LENGTH) steps = steps.slice(-LENGTH);
};

/** Marks: a line where a change of the policy begins, a wedge at the top while a push acts. */
const marks = (pen, height, at) => {
  let changed = -APART;
  pen.fillStyle = themed("--ink");
  steps.forEach((entry, i) => {
    if (i > 0 && entry.version !== steps[i - 1].version) {
      if (i - changed >= APART) pen.fillRect(Math.round(at(i)), 0, 1, height);
      changed = i;
    }
    if (entry.pushed && !steps[i - 1]?.pushed) {
      pen.beginPath();
      pen.moveTo(at(i) - 6, 0);
      pen.lineTo(at(i) + 6, 0);
      pen.lineTo(at(i), 11);
      pen.fill();
      pen.save();
      pen.strokeStyle = themed("--card");
      pen.stroke();
      pen.restore();
    }
  });
};

const draw = () => {
  const { pen, width, height } = sharpen($("band"));
  const wide = width / LENGTH, at = (i) => i * wide;
  pen.clearRect(0, 0, width, height);
  pen.fillStyle = themed("--default");
  pen.fillRect(0, 0, at(steps.length), height);
  pen.imageSmoothingEnabled = false;
  for (let i = 0; i < steps.length;) {
    const from = (columns - steps.length + i) % LENGTH;
    const count = Math.min(steps.length - i, LENGTH - from);
    pen.drawImage(ring, from, 0, count, TALL, at(i), 0, at(count), height);
    i += count;
  }
  marks(pen, height, at);
};

const tell = () => {
  const last = steps.at(-1);
  write($("band-steps"), last ? `memberships, steps ${steps[0].step} to ${last.step}` : "");
  if (studio.playing.on) return;
  const sums = new Map();
  for (const { m } of steps) for (const [id, share] of Object.entries(m)) sums.set(id, (sums.get(id) ?? 0) + share / steps.length);
  const most = [...sums].sort((a, b) => b[1] - a[1]).slice(0, 3).map(([id, share]) => `${name(Number(id))} ${Math.round(100 * share)}%`);
  mark($("band"), "aria-label", steps.length ? `Memberships over the last ${plural(steps.length, "step")}; on average ${most.join(", ")}` : "Memberships over time; no steps yet");
};

const redraw = oncePerFrame(() => { draw(); tell(); });

on("shown", ({ frames }) => {
  frames.forEach(take);
  draw();
  tell();
});
on("playing", redraw);
new ResizeObserver(redraw).observe($("band"));
whenThemeChanges(redraw);
