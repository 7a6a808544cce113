// A field for any label of the model. It is typed, and the browser completes it from a list. The browser offers only what
// has the text of the field in it, so a field that is entered gives up its text and shows it as a placeholder.

import { byId, element } from "./element.js";

const OFFERED = 1000; // names at a time; browsers are slow with more

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
      if (key === "Escape") input.blur();
    });
  }

  /** `key` is chosen. `likely` indices are offered before all others. */
  show(key, likely) {
    const index = this.#classes.index(key);
    this.#chosen = index === undefined ? key || (this.#none ?? "") : this.#classes.name(index);
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
      const many = matches.size < OFFERED ? matches.size : `${OFFERED} or more`;
      this.#refused.textContent = only ? `“${text}” is part of ${many} labels. Choose one.` : `The model has no label “${text}”.`;
    }
  }

  #offer(text) {
    const matches = this.#matches(text);
    this.#input.list.replaceChildren(...[...matches.keys()].map((value) => element("option", { value })));
    return matches;
  }

  /** Names that have `text` in them, and their keys. */
  #matches(text) {
    const found = new Map();
    const add = (name, key) => {
      if (name.toLowerCase().includes(text.toLowerCase())) found.set(name, key);
    };
    if (this.#none) add(this.#none, "");
    for (const index of this.#likely) add(this.#classes.name(index), this.#classes.key(index));
    for (const index of this.#classes.indices) {
      if (found.size >= OFFERED) break;
      add(this.#classes.name(index), this.#classes.key(index));
    }
    return found;
  }
}
