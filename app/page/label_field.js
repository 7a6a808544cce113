// A field for any label of the model. It is typed, and the browser completes it from a list. The browser offers only what
// has the text of the field in it, so a field that is entered gives up its text and shows it as a placeholder.

import { byId, element } from "./element.js";

const OFFERED = 1000; // names in the list at a time; browsers are slow with more

export class LabelField {
  #input;
  #classes;
  #none;
  #choose;
  #chosen = "";
  #likely = [];
  #refused;

  /** `none`: the name of the empty key, if that can be chosen. `choose` is called with a key. */
  constructor(input, { classes, none, choose }) {
    this.#input = input;
    this.#classes = classes;
    this.#none = none;
    this.#choose = choose;
    this.#refused = byId("no-label");
    for (const entered of ["focus", "pointerdown"]) input.addEventListener(entered, () => this.#enter());
    input.addEventListener("input", () => this.#type());
    input.addEventListener("change", () => this.#end());
    input.addEventListener("blur", () => (input.value = this.#chosen));
    input.addEventListener("keydown", ({ key }) => {
      if (key !== "Escape") return;
      this.#refused.textContent = "";
      input.value = this.#chosen; // otherwise leaving the field would choose what it has
      input.blur();
    });
  }

  /** `key` is chosen. `likely` indices are offered before all others. */
  show(key, likely) {
    const index = this.#classes.index(key);
    const chosen = index === undefined ? key || (this.#none ?? "") : this.#classes.name(index);
    if (chosen !== this.#chosen || likely !== this.#likely) this.#refused.textContent = "";
    this.#chosen = chosen;
    this.#input.placeholder = this.#chosen;
    if (document.activeElement !== this.#input) this.#input.value = this.#chosen;
    if (this.#likely === likely) return;
    this.#likely = likely;
    this.#offer(""); // a browser marks a field as one with a list where the list has something
  }

  #enter() {
    if (this.#input.value !== this.#chosen) return;
    this.#input.value = "";
    this.#offer("");
  }

  #type() {
    const text = this.#input.value.trim();
    this.#refused.textContent = "";
    const matches = this.#offer(text);
    if (matches.has(text)) this.#choose(matches.get(text)); // chosen from the list, or typed to its end
  }

  /** At Enter, or when the field is left. */
  #end() {
    const text = this.#input.value.trim();
    const matches = this.#matches(text);
    if (!text || matches.has(text)) return;
    const same = [...matches.keys()].filter((name) => name.toLowerCase() === text.toLowerCase());
    const [only, ...others] = same.length ? same : matches.keys();
    if (only && !others.length) {
      this.#input.value = only;
      this.#choose(matches.get(only));
    } else {
      const many = `“${text}” is part of ${matches.size} labels. Choose one.`;
      this.#refused.textContent = only ? many : `The model has no label “${text}”.`;
    }
  }

  #offer(text) {
    const matches = this.#matches(text);
    const offered = [...matches.keys()].slice(0, OFFERED);
    this.#input.list.replaceChildren(...offered.map((value) => element("option", { value })));
    return matches;
  }

  /** Names that contain `text`, with their keys. A name that is `text` itself comes first. */
  #matches(text) {
    const classes = [...this.#likely, ...this.#classes.indices].map((i) => [this.#classes.name(i), this.#classes.key(i)]);
    const all = this.#none ? [[this.#none, ""], ...classes] : classes;
    const wanted = text.toLowerCase();
    const found = all.filter(([name]) => name.toLowerCase().includes(wanted));
    return new Map([...found.filter(([name]) => name.toLowerCase() === wanted), ...found]);
  }
}
