// The form beside the map. Every control shows the state and changes it.

import { byId, element } from "./element.js";
import { LabelField } from "./label_field.js";
import { changesTo, isIdle } from "./maps.js";
import { METHODS, isMethod, isOfLabel, isSigned, secondsOf } from "./methods.js";

const COLORMAPS = ["viridis", "inferno", "magma", "cividis", "turbo", "gray"];
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
  #classes;
  #likely = []; // indices of classes, the most likely first
  #label;
  #against;

  /** `model`: the answer of GET /model. */
  constructor(state, model, classes) {
    this.#state = state;
    this.#shape = model.manifest;
    this.#classes = classes;
    for (const [name, { title }] of Object.entries(METHODS)) {
      const seconds = secondsOf(name, model);
      const said = seconds ? `${title}, ${seconds.toFixed(seconds < 10 ? 1 : 0)} s` : title;
      const choice = element("label", {}, element("input", { type: "radio", name: "method", value: name }), element("span", {}, said));
      choice.classList.toggle("of-classes", isOfLabel(name));
      byId("methods").append(choice);
    }
    const { label, against } = this.#form.elements;
    this.#label = new LabelField(label, { classes, choose: (key) => this.#compare({ label: key, prompt: "" }) });
    this.#against = new LabelField(against, {
      classes,
      none: "no second label",
      choose: (key) => this.#compare({ against: key }),
    });
    const sentence = ([method, { meaning }]) => element("span", { "data-method": method }, meaning);
    byId("meaning").replaceChildren(...Object.entries(METHODS).map(sentence));
    for (const event of ["pointerover", "pointerleave"])
      byId("methods").addEventListener(event, ({ target }) => this.#explain(target.value));
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
    const signed = isSigned(values.method);
    const ofLabel = isOfLabel(values.method);
    this.#explain();
    steps("layer", [...METHODS[values.method].layers, ...Array(layers).keys()]);
    steps("head", [...HEAD_NAMES, ...Array(heads).keys()]);
    byId("why").hidden = !ofLabel;
    this.#label.show(this.#key, this.#likely);
    this.#against.show(values.against, this.#likely);
    this.#offer("colormap", [["", signed ? "diverging" : "viridis"], ...COLORMAPS.slice(signed ? 0 : 1).map((c) => [c, c])]);
    for (const control of this.#form.elements) {
      if (!(control.name in values) || control.list) continue;
      const value = control.name === "layer" ? layerOf(values, this.#shape) : values[control.name];
      const host = control.closest(".steps, .appearance label");
      if (host) host.hidden = isIdle(control.name, values);
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

  /** What the chosen method shows, or the one under the pointer. */
  #explain(method) {
    const shown = isMethod(method) ? method : this.#state.values.method;
    for (const sentence of byId("meaning").children) sentence.classList.toggle("shown", sentence.dataset.method === shown);
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

/** Radio buttons, one for each of the values of a name. */
function steps(name, values) {
  const fieldset = byId(name);
  if (fieldset.dataset.steps === values.join()) return; // replacing them would take the focus
  fieldset.dataset.steps = values.join();
  const step = (value) => element("label", {}, element("input", { type: "radio", name, value }), element("span", {}, value));
  fieldset.replaceChildren(fieldset.firstElementChild, ...values.map(step));
}
