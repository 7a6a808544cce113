// A number out of a range, or one of a few named choices beside it: a layer or the mean of all, a head or the largest.

import { element } from "./element.js";

export class Stepper {
  #title;
  #shown;
  #range;
  #names;
  #choose;

  constructor(host, title, choose) {
    this.#title = title;
    this.#choose = choose;
    this.#shown = element("output");
    this.#range = element("input", { type: "range", min: 0, step: 1, "aria-label": title });
    this.#names = element("div", { class: "chips", role: "group", "aria-label": `${title}: named choices` });
    this.#range.addEventListener("input", () => choose(this.#range.value));
    host.append(element("div", { class: "head" }, element("span", {}, title), this.#shown), this.#range, this.#names);
  }

  /** `value` is a number as text, or one of `names`; `names` empty and `count` 0: nothing to choose. */
  show(value, { count, names }) {
    const numbered = /^\d+$/.test(value);
    this.#range.disabled = count === 0;
    this.#range.max = Math.max(count - 1, 0);
    this.#range.value = numbered ? value : Math.max(count - 1, 0);
    this.#range.classList.toggle("idle", !numbered);
    this.#range.ariaValueText = value;
    this.#shown.textContent = count === 0 ? "all" : value;
    this.#names.replaceChildren(
      ...names.map((name) =>
        element(
          "button",
          { type: "button", "aria-pressed": String(name === value), onclick: () => this.#choose(name) },
          name,
        ),
      ),
    );
  }
}
