/* All experts as cards, kept in the order of the policy. */

import { card } from "./card.js";
import { on } from "./connection.js";
import { $ } from "./dom.js";
import { ids } from "./store.js";

const cards = new Map(), portraits = new Map(), firsts = new Map();

/** Takes away the cards of experts that are gone. Someone whose focus was in one of them goes on at Undo. */
const clear = (kept) => {
  for (const [id, { node }] of cards) {
    if (kept.includes(id)) continue;
    const focused = node.contains(document.activeElement);
    node.remove();
    cards.delete(id);
    if (focused) $("undo").focus({ preventScroll: true });
  }
};

on("policy", ({ experts }) => {
  clear(ids());
  experts.forEach((expert, at) => {
    const { id } = expert;
    if (!firsts.has(id)) firsts.set(id, expert.prototype);
    if (!cards.has(id)) {
      cards.set(id, card(id, firsts.get(id)));
      if (portraits.has(id)) cards.get(id).portray(portraits.get(id));
    }
    const { node, show } = cards.get(id), box = $("cards");
    if (box.children[at] !== node) box.insertBefore(node, box.children[at] ?? null);
    show(expert);
  });
});

on("portrait", (portrait) => {
  portraits.set(portrait.id, portrait);
  cards.get(portrait.id)?.portray(portrait);
});

on("shown", ({ frames }) => {
  const { memberships, leader } = frames.at(-1);
  for (const [id, { act }] of cards) act(memberships[id] ?? 0, id === leader);
});
