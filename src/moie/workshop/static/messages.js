/* Lines for the person: what was refused, what happened to the simulator, and that the connection is lost. */

import { on } from "./connection.js";
import { $, make } from "./dom.js";
import { studio } from "./store.js";

const MOST = 3;
const STAYS = { notice: 8000, simulator: 8000, refused: 12000 };

/** Shows a line for a while. One that is there already stays longer, instead of being said again. */
const say = (kind, text) => {
  const box = $("messages");
  let line = [...box.children].find((node) => node.dataset.text === text);
  if (!line) {
    line = make("div", { className: `message ${kind}`, "data-text": text, "data-kind": kind }, make("span", { textContent: text }));
    const close = make("button", { type: "button", textContent: "×", "aria-label": "Close this line" });
    const gone = line;
    close.addEventListener("click", () => gone.remove());
    line.append(close);
    box.append(line);
    while (box.children.length > MOST) box.firstChild.remove();
  }
  clearTimeout(Number(line.dataset.timer));
  if (STAYS[kind]) line.dataset.timer = setTimeout(() => line.remove(), STAYS[kind]);
};

on("refused", ({ text }) => say("refused", text));
on("notice", ({ text }) => say("notice", text));
on("simulator", ({ state, text }) => { if (text && (state === "restarted" || state === "failed")) say("simulator", text); });
on("lost", () => {
  const title = studio.hello?.title ?? "zoo:hopper";
  document.body.classList.add("lost");
  say("lost", `The studio was closed. Start it again with: moie studio ${title}`);
});
