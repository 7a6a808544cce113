// A field for any label of the model. It is typed, and the browser completes it from a list. The browser offers only what
// has the text of the field in it, so a field that is entered gives up its text and shows it as a placeholder.

import { byId, options } from "./element.js";

const OFFERED = 1000; // names in the list at a time; browsers are slow with more

/** `none`: the name of the empty key, if that can be chosen. `choose` is called with a key. Gives `show(key)`: that one is
 * chosen.
 */
export function labelField(input, { classes, none, choose }) {
  const refused = byId("no-label");
  let chosen = "";
  let likely; // classes that are offered before all others

  /** Names that contain `text`, with their keys. A name that is `text` itself comes first. */
  function matching(text) {
    const named = [...classes.likely, ...classes.labels.keys()].map((i) => [classes.name(i), classes.key(i)]);
    const all = none ? [[none, ""], ...named] : named;
    const wanted = text.toLowerCase();
    const found = all.filter(([name]) => name.toLowerCase().includes(wanted));
    return new Map([...found.filter(([name]) => name.toLowerCase() === wanted), ...found]);
  }

  function offer(text) {
    const matches = matching(text);
    input.list.replaceChildren(...options([...matches.keys()].slice(0, OFFERED).map((name) => [name])));
    return matches;
  }

  function enter() {
    if (input.value !== chosen) return;
    input.value = "";
    offer("");
  }

  for (const entered of ["focus", "pointerdown"]) input.addEventListener(entered, enter);
  input.addEventListener("input", () => {
    const text = input.value.trim();
    refused.textContent = "";
    const matches = offer(text);
    if (matches.has(text)) choose(matches.get(text)); // chosen from the list, or typed to its end
  });
  input.addEventListener("change", () => { // at Enter, or when the field is left
    const text = input.value.trim();
    const matches = matching(text);
    if (!text || matches.has(text)) return;
    const same = [...matches.keys()].filter((name) => name.toLowerCase() === text.toLowerCase());
    const [only, ...others] = same.length ? same : matches.keys();
    if (only && !others.length) {
      input.value = only;
      choose(matches.get(only));
    } else {
      const many = `“${text}” is part of ${matches.size} labels. Choose one.`;
      refused.textContent = only ? many : `The model has no label “${text}”.`;
    }
  });
  input.addEventListener("blur", () => (input.value = chosen));
  input.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape") return;
    refused.textContent = "";
    input.value = chosen; // otherwise leaving the field would choose what it has
    input.blur();
  });

  return (key) => {
    const index = classes.index(key);
    const now = index === undefined ? key || (none ?? "") : classes.name(index);
    if (now !== chosen || likely !== classes.likely) refused.textContent = "";
    chosen = input.placeholder = now;
    if (document.activeElement !== input) input.value = chosen;
    if (likely !== classes.likely) offer(""); // a browser marks a field as one with a list where the list has something
    likely = classes.likely;
  };
}
