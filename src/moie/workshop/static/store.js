/* What the page knows: what the studio said last, and a name and a colour for every expert it ever named. */

import { on } from "./connection.js";
import { themed } from "./dom.js";

export const studio = { hello: null, policy: null, frame: null, playing: { on: false }, lost: false };

const seen = new Map();

on("hello", (hello) => { studio.hello = hello; });
on("policy", (policy) => {
  studio.policy = policy;
  for (const expert of policy.experts) seen.set(expert.id, expert);
});
on("playing", (playing) => { studio.playing = playing; });
on("lost", () => { studio.lost = true; });

/** The experts' ids as the policy lists them. */
export const ids = () => (studio.policy?.experts ?? []).map((expert) => expert.id);

/** "expert 3", without its label. */
export const number = (id) => seen.get(id)?.name.split(' "')[0] ?? `expert ${id}`;

/** The full name: expert 3 "push off"; the default has no number. */
export const name = (id) => (id < 0 ? "the default" : seen.get(id)?.name ?? `expert ${id}`);

/** A name for a narrow column. */
export const short = (id) => {
  const label = seen.get(id)?.label;
  return label ? `${number(id).replace("expert ", "")} ${label}` : number(id);
};

/** Whether it is muted, or another one plays solo. */
export const isSilent = (id) => Boolean(seen.get(id)?.silent);

/** A colour for the style of an element. */
export const colour = (id) => (id < 0 ? "var(--default)" : seen.get(id)?.colour ?? "var(--soft)");

/** The same colour for a drawing, which knows no variables. */
export const ink = (id) => (id < 0 ? themed("--default") : seen.get(id)?.colour ?? themed("--soft"));
