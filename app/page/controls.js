// The form beside the map. Every control shows the state and changes it.

import { byId, element } from "./element.js";
import { LabelField } from "./label_field.js";
import { changesTo, isOfLabel } from "./maps.js";

const COLORMAPS = ["viridis", "inferno", "magma", "cividis", "turbo", "gray"];
const MEANINGS = {
  class_token: "How much the tokens that the result is read from, usually the class token, attend to each patch in one layer.",
  rollout: "The attention of all layers multiplied together. Half of each layer is the residual connection (Abnar and Zuidema, 2020).",
  evidence: "What each patch adds to the logit of a label (red) or takes from it (blue): the exact direct effect.",
  positive_evidence: "What each patch adds to the logit of a label, without what it takes from it in other layers, times rollout. It finds more of the patches that the score needs, but does not add up to the logit.",
};
const LAYER_NAMES = { class_token: ["mean"], rollout: [], evidence: ["sum", "mean"], positive_evidence: ["sum", "mean"] };
const HEAD_NAMES = ["mean", "max", "min"];

/** The layer that is shown, as text. An empty `layer` means the method's default. */
export function layerOf({ method, layer }, { layers }) {
  if (layer !== "") return Number(layer) < 0 ? String(layers + Number(layer)) : layer;
  return isOfLabel(method) ? "sum" : String(layers - 1);
}

export class Controls {
  #state;
  #shape;
  #form = byId("controls");
  #layer;
  #head;
  #classes;
  #likely = []; // indices of classes, the most likely first
  #label;
  #against;

  /** `shape`: {layers, heads} of the model. */
  constructor(state, shape, classes) {
    this.#state = state;
    this.#shape = shape;
    this.#classes = classes;
    const { label, against } = this.#form.elements;
    this.#label = new LabelField(label, { classes, choose: (key) => this.#compare({ label: key }) });
    this.#against = new LabelField(against, {
      classes,
      none: "no second label",
      choose: (key) => this.#compare({ against: key }),
    });
    this.#layer = new Stepper(byId("layer"), "Layer", (layer) => state.set({ layer }));
    this.#head = new Stepper(byId("head"), "Head", (head) => state.set({ head }));
    this.#form.addEventListener("input", ({ target }) => this.#apply(target));
    this.#form.addEventListener("submit", (event) => event.preventDefault());
    state.addEventListener("change", () => this.show());
  }

  /** The classes that are offered first: [{index}], the most likely before the others. */
  set likely(predictions) {
    this.#likely = predictions.map(({ index }) => index);
    this.show();
  }

  show() {
    const values = this.#state.values;
    const { layers, heads } = this.#shape;
    const signed = values.method === "evidence";
    const ofLabel = isOfLabel(values.method);
    byId("meaning").textContent = MEANINGS[values.method];
    this.#layer.show(layerOf(values, this.#shape), {
      count: values.method === "rollout" ? 0 : layers,
      names: LAYER_NAMES[values.method],
    });
    const oneRow = values.method === "class_token";
    this.#head.show(values.head, { count: oneRow ? heads : 0, names: oneRow ? HEAD_NAMES : [] });
    byId("head").hidden = ofLabel;
    byId("why").hidden = !ofLabel;
    this.#label.show(this.#key, this.#likely);
    this.#against.show(values.against, this.#likely);
    this.#offer("colormap", [["", signed ? "diverging" : "viridis"], ...COLORMAPS.slice(signed ? 0 : 1).map((c) => [c, c])]);
    for (const control of this.#form.elements) {
      if (!(control.name in values) || control.list) continue;
      const value = values[control.name];
      if (control.type === "radio") control.checked = control.value === value;
      else if (control.type === "checkbox") control.checked = value === "true";
      else control.value = value;
    }
    byId("alpha-value").textContent = `${Math.round(Number(values.alpha) * 100)} %`;
  }

  /** Of the class that is explained. */
  get #key() {
    return this.#state.values.label || (this.#likely.length ? this.#classes.key(this.#likely[0]) : "");
  }

  /** A label is never compared with itself. */
  #compare(changes) {
    const { label = this.#key, against = this.#state.values.against } = changes;
    this.#state.set(against === label ? { ...changes, against: "" } : changes);
  }

  #offer(name, choices) {
    const select = this.#form.elements[name];
    const before = [...select.options].map((option) => `${option.value}=${option.text}`).join();
    if (before === choices.map(([value, text]) => `${value}=${text}`).join()) return; // replacing the options would close an open list
    select.replaceChildren(...choices.map(([value, text]) => element("option", { value }, text)));
  }

  #apply(control) {
    if (!(control.name in this.#state.values) || control.list) return;
    const value = control.type === "checkbox" ? String(control.checked) : control.value;
    const changes = control.name === "method" ? changesTo(value, this.#state.values) : { [control.name]: value };
    this.#state.set(changes);
  }
}

/** A slider for a number, with buttons for named choices beside it: a layer or the mean of all layers, for example. */
class Stepper {
  #value;
  #range;
  #names;
  #choose;

  constructor(host, title, choose) {
    this.#choose = choose;
    this.#value = element("output");
    this.#range = element("input", { type: "range", min: 0, step: 1, "aria-label": title });
    this.#names = element("div", { class: "chips", role: "group", "aria-label": `${title}: named choices` });
    this.#range.addEventListener("input", () => choose(this.#range.value));
    this.#range.addEventListener("click", () => choose(this.#range.value)); // an idle slider is at 0 already
    host.append(element("div", { class: "head" }, element("span", {}, title), this.#value), this.#range, this.#names);
  }

  /** `value` is one of `names` or a number below `count`, as text. With `count` 0 there is nothing to choose. */
  show(value, { count, names }) {
    const numbered = /^\d+$/.test(value);
    this.#range.disabled = count === 0;
    this.#range.max = Math.max(count - 1, 0);
    this.#range.value = numbered ? value : 0;
    this.#range.classList.toggle("idle", !numbered);
    this.#range.ariaValueText = value;
    this.#value.textContent = count === 0 ? "all" : value;
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
