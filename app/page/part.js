// The parts of the page under the tabs. Each is loaded while its tab is open, or measured when a person asks, and its
// sentence says what is shown or why nothing is.

import { json } from "./api.js";
import { byId } from "./element.js";
import { DEBOUNCE_MS, Latest } from "./latest.js";

const OF_MODEL = "This is for labels of the model. Choose one of them in place of the label that you typed.";

/** `load(values, signal)` once the tab of the parts with these ids is open and one of the `names` has changed, then
 * `show(loaded, values)`, which may return a sentence. After a failure that may pass, a turn to any tab loads it again.
 */
export function showPart(state, ids, { names, load, show }) {
  const parts = ids.split(" ").map(byId);
  const panel = parts[0].closest("[role=tabpanel]").id;
  const latest = new Latest();
  let [due, failed] = [true, false];

  function say(sentence, failing = false) {
    for (const part of parts) {
      part.classList.toggle("failed", failing);
      part.querySelectorAll("[role=status]").forEach((status) => (status.textContent = sentence));
    }
  }

  state.follow((values, changed) => {
    due ||= [...names, ...(failed ? ["tab"] : [])].some((name) => changed.has(name));
    if (!due) return;
    latest.cancel();
    if (values.tab !== panel || (names.includes("id") && !values.id)) return;
    due = failed = false;
    latest.run({
      waitMs: DEBOUNCE_MS,
      load: (signal) => load(values, signal),
      show: (loaded) => say(show(loaded, values) ?? ""),
      busy: say,
      fail: (problem) => {
        failed = problem.temporary;
        say(problem.message, true);
      },
    });
  });
}

/** What a person asks the server to measure. `show(measured)` returns a sentence. `clear()` removes what is shown, once
 * the page has come to show something else.
 */
export function measurement(state, id, { show, clear }) {
  const status = byId(id).querySelector("[role=status]");
  const say = (sentence) => (status.textContent = sentence);
  const latest = new Latest();
  let address; // gives what is asked, by what the page shows now
  let asked; // what it gave when that was asked

  /** Hold what is shown for what `next()` gives now. */
  function keep(next) {
    address = next;
    asked = next?.();
  }

  function drop(sentence = "") {
    latest.cancel();
    keep(undefined);
    say(sentence);
    clear();
  }

  /** Measure what `next()` gives; until then a `sentence` stands there. */
  function run(next, sentence) {
    if (state.values.prompt) return drop(OF_MODEL);
    keep(next);
    say(sentence);
    latest.run({
      load: (signal) => json(asked, { method: "POST", signal }),
      show: (measured) => say(show(measured)),
      busy: say,
      fail: (problem) => drop(problem.message),
    });
  }

  state.follow(() => address?.() === asked || drop());
  return { run, keep, drop };
}
