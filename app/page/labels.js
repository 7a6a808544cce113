// The most likely labels, with bars: the answer, and the others in small type below it. A click on one shows the evidence for it.

import { breakable, byId, element } from "./element.js";
import { isOfLabel } from "./methods.js";
import { percent } from "./numbers.js";

const SHORT = 18; // letters of an answer that fit beside the image in large type

export class Labels {
  #state;
  #classes;

  constructor(state, classes) {
    this.#state = state;
    this.#classes = classes;
    state.addEventListener("change", () => this.#mark());
  }

  /** `predictions`: [{label, index, score}], the most likely first; `file`: the name of the image, if it has one. */
  show(predictions, file) {
    byId("labels").replaceChildren(...predictions.map((one) => this.#row(one)));
    if (file) byId("labels").querySelector("button")?.prepend(element("span", { class: "file", title: file }, file));
    this.#mark();
  }

  #row({ index, score }) {
    const [key, name] = [this.#classes.key(index), this.#classes.name(index)];
    const choose = () => {
      const { method } = this.#state.values;
      const shown = isOfLabel(method) ? method : "evidence";
      this.#state.set({ method: shown, label: key, prompt: "", against: "", layer: "", colormap: "" });
    };
    return labelRow({ key, name, score, choose });
  }

  #mark() {
    const { method, label, prompt } = this.#state.values;
    const buttons = [...byId("labels").querySelectorAll("button")];
    for (const [rank, button] of buttons.entries()) {
      const chosen = label === "" ? rank === 0 : button.dataset.key === label;
      button.ariaPressed = String(isOfLabel(method) && !prompt && chosen);
    }
  }
}

/** A label with its score as a bar, and a button that chooses it. */
export function labelRow({ key, name, score, choose }) {
  const bar = element("span", { class: "bar" });
  bar.style.setProperty("--share", score);
  return element(
    "li",
    { class: name.length > SHORT ? "long" : null },
    element(
      "button",
      { type: "button", "data-key": key, title: `Show the evidence for “${name}”`, onclick: choose },
      element("span", { class: "name" }, breakable(name)),
      bar,
      element("span", { class: "score" }, percent(score)),
    ),
  );
}
