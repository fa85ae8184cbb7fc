/* The picture, who acts now, what is done, and how far it has come. */

import { actionBars, memberBars } from "./bars.js";
import { on, send, tell } from "./connection.js";
import { $, brief, mark, oncePerFrame, paint, write } from "./dom.js";
import { colour, name, short, studio } from "./store.js";

const members = memberBars($("members"), "data-member");
const said = { terminated: "Over: ended by the task", truncated: "Over: ended by time" };
const SEEN = 900; /* milliseconds for which a push stays written on the picture */
let action = () => {}, arrived = [], inOrder = Promise.resolve(), fading = 0;

/** "expert 3 leads", as the report says it. */
export const leading = ({ leader, memberships }) => {
  const first = Object.entries(memberships).sort((a, b) => b[1] - a[1])[0];
  if (!first) return "The default acts alone";
  return leader >= 0 ? `${name(leader)} leads` : `default leads, then ${name(Number(first[0]))}`;
};

/** How far the strongest expert's prototype is, and how far away it is as strong as the default. */
const reaching = ({ memberships, distances, reach }) => {
  const first = Object.entries(memberships).sort((a, b) => b[1] - a[1])[0];
  if (!first) return "";
  const [id] = first, most = reach[id];
  return `${short(Number(id))}: ${brief(distances[id])}${most === null ? "" : ` of ${brief(most)}`} radii away`;
};

const draw = (bitmap) => {
  const canvas = $("screen");
  if (canvas.width !== bitmap.width || canvas.height !== bitmap.height) {
    canvas.width = bitmap.width;
    canvas.height = bitmap.height;
  }
  canvas.getContext("2d").drawImage(bitmap, 0, 0);
  $("veil").hidden = true;
};

/** Says on the picture that the robot is being pushed; while it is paused, the push waits for the next step. */
const sayPush = ({ pushed, trail }) => {
  if (!pushed && !trail?.some((step) => step.pushed)) return;
  write($("hit"), studio.playing.on || !pushed ? "pushed" : "pushed from the next step on");
  $("hit").hidden = false;
  clearTimeout(fading);
  if (studio.playing.on || !pushed) fading = setTimeout(() => { $("hit").hidden = true; }, SEEN);
};

const describe = (frame) => {
  write($("lead"), leading(frame));
  paint($("lead-swatch"), "background-color", frame.leader < 0 ? "var(--default)" : colour(frame.leader));
  write($("reach"), reaching(frame));
  write($("return"), frame.return.toFixed(1));
  mark($("return"), "data-value", frame.return);
  write($("at-step"), String(frame.step));
  write($("episode"), String(frame.episode));
  write($("at-seed"), String(frame.seed));
  $("walked-box").hidden = frame.position === null || frame.position === undefined;
  if (!$("walked-box").hidden) write($("walked"), `${frame.position.toFixed(1)} m`);
  write($("pace"), !studio.playing.on ? "paused" : frame.pace ? `${frame.pace.toFixed(2)} ×` : "-");
  $("over").hidden = !frame.over;
  if (frame.over) write($("over"), said[frame.over] ?? frame.over);
  if (!studio.playing.on) mark($("screen"), "aria-label", `${studio.hello?.task ?? "The robot"} at step ${frame.step}`);
};

const show = (frame) => {
  studio.frame = frame;
  window.studio = { frame };
  members.show(frame);
  const drawn = studio.playing.actions === "sampled" && frame.taken;
  action(frame.action, drawn ? frame.taken : null);
  $("taken-note").hidden = !drawn;
  describe(frame);
  for (const part of ["step", "version", "frame", "episode"]) document.body.dataset[part] = frame[part];
};

/** Shows the newest of the frames that have come since the page was last drawn; the band gets the steps of all. */
const showNewest = oncePerFrame(() => {
  const frames = arrived;
  arrived = [];
  const picture = frames.findLast(({ bitmap }) => bitmap)?.bitmap;
  if (picture) draw(picture);
  for (const { bitmap } of frames) bitmap?.close();
  show(frames.at(-1).header);
  for (const { header } of frames) sayPush(header);
  tell({ type: "shown", frames: frames.map(({ header }) => header) });
  for (const { header } of frames) send({ type: "seen", frame: header.frame });
});

on("frame", ({ header, picture }) => {
  const blob = new Blob([picture], { type: "image/jpeg" });
  const decoded = picture.length ? createImageBitmap(blob).catch(() => null) : Promise.resolve(null);
  inOrder = inOrder.then(async () => {
    const bitmap = await decoded;
    arrived.push({ header, bitmap });
    showNewest();
  });
});

on("hello", ({ joints, low, high }) => { action = actionBars($("joints"), "data-joint", joints, low, high); });
on("policy", () => {
  members.arrange();
  if (studio.frame) describe(studio.frame);
});
on("playing", ({ on: playing }) => {
  document.body.dataset.playing = playing;
  mark($("said"), "aria-live", playing ? "off" : "polite");
  mark($("screen"), "aria-label", playing ? `${studio.hello?.task ?? "The robot"}, playing` : `${studio.hello?.task ?? "The robot"} at step ${studio.frame?.step ?? 0}`);
  if (studio.frame) describe(studio.frame);
});

const veil = (text, again = false) => {
  $("veil").hidden = false;
  write($("veil-text"), text);
  $("again").hidden = !again;
};
on("simulator", ({ state, text, picture }) => {
  if (state === "starting") veil(text || "The simulator starts …");
  else if (state === "failed") veil(text, true);
  else if (picture) veil(`No picture: ${picture}`);
  else if (picture === null || state === "ready") $("veil").hidden = true;
});
