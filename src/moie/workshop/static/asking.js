/* Questions to the studio, one at a time: the next goes out when the last is answered, and only the newest counts. */

import { on, send } from "./connection.js";

const PATIENCE = 1500;

/** ask(question) sends a message of this type; hear(answer) gets the answers to the newest questions only. */
export const asker = (type, hear) => {
  let number = 0, open = null, next = null, timer = 0;

  const put = (question) => {
    open = { ...question, type, number: ++number };
    clearTimeout(timer);
    timer = setTimeout(goOn, PATIENCE);
    send(open);
  };
  const goOn = () => {
    clearTimeout(timer);
    open = null;
    if (!next) return;
    const question = next;
    next = null;
    put(question);
  };
  on(type, (answer) => {
    if (!open || answer.number !== open.number) return;
    hear(answer);
    goOn();
  });
  on("refused", () => open && goOn());
  return (question) => {
    if (open) next = question;
    else put(question);
  };
};
