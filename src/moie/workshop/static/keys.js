/* Keys for the whole page. They keep out of fields and menus, and can be turned off. */

import { $ } from "./dom.js";
import { redo, undo } from "./hands.js";
import { oneStep, playOrPause, push, startAgain } from "./player.js";

/** Whether the focused element needs this key for itself. */
const isTaken = ({ target, key }) => {
  if (target.closest("textarea, select, [contenteditable]")) return true;
  if (target.matches("input") && !["range", "checkbox"].includes(target.type)) return true;
  return key === " " && Boolean(target.closest("button, summary, a, input[type=checkbox]"));
};

const acts = { " ": playOrPause, ".": oneStep, r: startAgain, p: push, z: undo, Z: redo };

addEventListener("keydown", (event) => {
  if (event.altKey || event.defaultPrevented || isTaken(event)) return;
  const isUndo = (event.ctrlKey || event.metaKey) && ["z", "y"].includes(event.key.toLowerCase());
  if (isUndo) {
    event.preventDefault();
    return event.shiftKey || event.key.toLowerCase() === "y" ? redo() : undo();
  }
  const act = acts[event.key];
  if (!act || event.ctrlKey || event.metaKey || !$("use-keys").checked) return;
  event.preventDefault();
  if (!event.repeat || act === oneStep || act === undo || act === redo) act();
});

/** A link to a closed part of the page opens it. */
const openTarget = () => {
  const target = document.getElementById(location.hash.slice(1));
  const fold = target?.matches("details") ? target : target?.id === "keys" ? $("keys-list") : null;
  if (fold) fold.open = true;
};
addEventListener("hashchange", openTarget);
for (const link of document.querySelectorAll("nav a")) link.addEventListener("click", () => setTimeout(openTarget, 0));
