/* Try: what the changes do to the return. Save: the changed policy as files. */

import { on, send } from "./connection.js";
import { $, make, plural, signed, write } from "./dom.js";
import { studio } from "./store.js";

let tried = null;

const verdict = ({ difference, error }) => {
  if (error === null || error === undefined) return "one episode tells little";
  if (Math.abs(difference) <= 2 * error) return "no clear difference";
  return difference > 0 ? "better" : "worse";
};
const fixed = (value) => value.toFixed(1);

const line = (kind, result) => {
  const error = result.error === null || result.error === undefined ? "" : ` ± ${fixed(result.error)}`;
  const cells = [kind, fixed(result.before), fixed(result.after), signed(result.difference, 1) + error];
  const row = make("tr", { "data-kind": kind }, ...cells.map((text) => make("td", { textContent: text })));
  row.lastChild.append(make("small", { textContent: verdict(result) }));
  for (const part of ["before", "after", "difference", "error"]) row.dataset[part] = result[part] ?? "";
  return row;
};

const noteAge = () => {
  const note = $("try-age");
  if (note && tried) note.hidden = studio.policy?.version === tried.version;
};

const result = (message) => {
  tried = message;
  const heads = ["actions", "original", "changed", "difference"];
  const table = make("table", { className: "numbers" },
    make("thead", {}, make("tr", {}, ...heads.map((text) => make("th", { textContent: text })))),
    make("tbody", {}, ...["sampled", "mean"].filter((kind) => message[kind]).map((kind) => line(kind, message[kind]))));
  $("try-result").replaceChildren(
    make("p", { className: "warning", id: "try-age", hidden: true, textContent: "The policy has changed since; these numbers are those of an earlier version." }),
    make("div", { className: "wide" }, table),
    make("p", { className: "note", textContent: `Mean return of ${plural(message.episodes, "episode")}, the same seeds from ${message.seed} on for both; ± is the standard error of the difference. Better or worse: by more than two of it.` }),
    make("details", {}, make("summary", { textContent: "In full" }), make("pre", { tabIndex: 0, textContent: message.text })));
  noteAge();
};

const running = (on) => {
  $("stop-try").hidden = !on;
  $("try-progress").hidden = !on;
  $("try").disabled = on;
  if (!on) write($("try-done"), "");
};

on("try", (message) => {
  running(message.state === "running");
  if (message.state === "running") {
    $("try-progress").max = message.total;
    $("try-progress").value = message.done;
    write($("try-done"), `${message.done} of ${message.total} episodes`);
  } else if (message.state === "done") result(message);
  else if (message.state === "stopped") write($("try-done"), "Stopped.");
  else $("try-result").replaceChildren(make("p", { className: "warning", textContent: message.text }));
});

on("hello", ({ episodes, folder, name }) => {
  write($("try"), `Try it: ${plural(episodes, "episode")} before and after`);
  $("save-name").value = name;
  $("save-note").replaceChildren("Writes a policy file, and the same as TOML, which a person can read, to ", make("code", { textContent: folder }));
});

on("policy", ({ silent }) => {
  noteAge();
  $("save-silent").hidden = !silent;
  if (silent) write($("save-silent"), `${plural(silent, "expert is", "experts are")} silent now and would be saved with weight 0.`);
});

on("saved", ({ policy, toml, text }) => {
  const code = (path) => make("code", { textContent: path });
  $("saved").replaceChildren(make("p", {}, "Saved: ", code(policy), " and ", code(toml), text ? ` (${text}).` : "."));
});

const save = () => send({ type: "save", name: $("save-name").value.trim() });
$("try").addEventListener("click", () => {
  running(true);
  $("stop-try").focus({ preventScroll: true });
  $("try-progress").removeAttribute("value");
  send({ type: "try" });
});
$("stop-try").addEventListener("click", () => send({ type: "stop-try" }));
$("save").addEventListener("click", save);
$("save-name").addEventListener("keydown", (event) => { if (event.key === "Enter") save(); });
on("refused", () => { if ($("try-done").textContent === "") running(false); });
