// The form beside the picture: every control shows the state and changes it.

import { byId, element } from "./element.js";
import { Stepper } from "./stepper.js";

const COLORMAPS = ["viridis", "inferno", "magma", "cividis", "turbo", "gray"];
const MEANS = {
  class_token: "Where the head of the network reads from in one layer: its row of attention, after softmax.",
  rollout: "Attention multiplied through all layers, half of each layer passing straight on (Abnar and Zuidema, 2020).",
  evidence: "What each patch adds to the class’s score (red) and what it takes away (blue): the direct effect, and exact.",
};
const LAYER_NAMES = { class_token: ["mean"], rollout: [], evidence: ["sum", "mean"] };
const HEAD_NAMES = ["mean", "max", "min"];

/** The layer on show, where an empty one stands for the method's default. */
export function layerOf({ method, layer }, { layers }) {
  if (layer !== "") return Number(layer) < 0 ? String(layers + Number(layer)) : layer;
  return method === "evidence" ? "sum" : String(layers - 1);
}

export class Controls {
  #state;
  #shape;
  #form = byId("controls");
  #layer;
  #head;
  #classes = [];

  /** `shape` has layers and heads of the model. */
  constructor(state, shape) {
    this.#state = state;
    this.#shape = shape;
    this.#layer = new Stepper(byId("layer"), "Layer", (layer) => state.set({ layer }));
    this.#head = new Stepper(byId("head"), "Head", (head) => state.set({ head }));
    this.#form.addEventListener("input", ({ target }) => this.#take(target));
    this.#form.addEventListener("submit", (event) => event.preventDefault());
    state.addEventListener("change", () => this.show());
  }

  /** The classes that evidence was kept for: [{index, label}], the most likely first. */
  set classes(classes) {
    this.#classes = classes;
    this.show();
  }

  show() {
    const values = this.#state.values;
    const { layers, heads } = this.#shape;
    const signed = values.method === "evidence";
    byId("means").textContent = MEANS[values.method];
    this.#layer.show(layerOf(values, this.#shape), {
      count: values.method === "rollout" ? 0 : layers,
      names: LAYER_NAMES[values.method],
    });
    const oneRow = values.method === "class_token";
    this.#head.show(values.head, { count: oneRow ? heads : 0, names: oneRow ? HEAD_NAMES : [] });
    byId("head").hidden = signed;
    byId("why").hidden = !signed;
    this.#offer("label", this.#classes.map(({ index, label }) => [String(index), label]));
    this.#offer("against", [
      ["", "anything else"],
      ...this.#classes.filter(({ index }) => String(index) !== this.#label).map(({ index, label }) => [String(index), label]),
    ]);
    this.#offer("colormap", [["", signed ? "diverging" : "viridis"], ...COLORMAPS.slice(signed ? 0 : 1).map((c) => [c, c])]);
    for (const control of this.#form.elements) {
      if (!(control.name in values)) continue;
      const value = control.name === "label" ? this.#label : values[control.name];
      if (control.type === "radio") control.checked = control.value === value;
      else if (control.type === "checkbox") control.checked = value === "true";
      else control.value = value;
    }
    byId("alpha-value").textContent = `${Math.round(Number(values.alpha) * 100)} %`;
  }

  get #label() {
    return this.#state.values.label || String(this.#classes[0]?.index ?? "");
  }

  #offer(name, choices) {
    const select = this.#form.elements[name];
    const before = [...select.options].map((option) => `${option.value}=${option.text}`).join();
    if (before === choices.map(([value, text]) => `${value}=${text}`).join()) return; // an open list stays open
    select.replaceChildren(...choices.map(([value, text]) => element("option", { value }, text)));
  }

  #take(control) {
    if (!(control.name in this.#state.values)) return;
    const value = control.type === "checkbox" ? String(control.checked) : control.value;
    const changes = { [control.name]: value };
    if (control.name === "method") changes.layer = changes.colormap = "";
    if (control.name === "label" && this.#state.values.against === value) changes.against = "";
    this.#state.set(changes);
  }
}
