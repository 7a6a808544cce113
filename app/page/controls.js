// The form beside the map. Every control shows the state and changes it.

import { byId, element, options } from "./element.js";
import { labelField } from "./label_field.js";
import { changesTo, isIdle } from "./maps.js";
import { METHODS, isMethod, isOfLabel, isOffered, isSigned, secondsOf } from "./methods.js";

const COLORMAPS = ["viridis", "inferno", "magma", "cividis", "turbo", "gray"];
const HEAD_NAMES = ["mean", "max", "min"];

/** The layer that is shown, as text. An empty `layer` means the method's default. */
export function layerOf({ method, layer }, { layers }) {
  if (layer !== "") return Number(layer) < 0 ? String(layers + Number(layer)) : layer;
  return isOfLabel(method) ? "sum" : String(layers - 1);
}

/** `model`: the answer of GET /model. */
export function showControls(state, model, classes) {
  const { manifest: shape } = model;
  const form = byId("controls");
  const { elements } = form;

  byId("methods").append(...Object.keys(METHODS).map((name) => methodChoice(name, model)));
  byId("meaning").replaceChildren(...Object.entries(METHODS).map(([method, { meaning }]) => element("span", { "data-method": method }, meaning)));
  for (const event of ["pointerover", "pointerleave"])
    byId("methods").addEventListener(event, ({ target }) => explain(isMethod(target.value) ? target.value : state.values.method));

  /** What a method shows: the one that is chosen, or the one under the pointer. */
  function explain(method) {
    for (const sentence of byId("meaning").children) sentence.classList.toggle("shown", sentence.dataset.method === method);
  }

  /** A label is never compared with itself. */
  function compare(changes) {
    const { label = classes.explained(state.values), against = state.values.against } = changes;
    state.set(against === label ? { ...changes, against: "" } : changes);
  }

  const showLabel = labelField(elements.label, { classes, choose: (label) => compare({ label, prompt: "" }) });
  const showAgainst = labelField(elements.against, { classes, none: "no second label", choose: (against) => compare({ against }) });

  form.addEventListener("input", ({ target: { name, type, checked, value, list } }) => {
    if (!(name in state.values) || list) return;
    const text = type === "checkbox" ? String(checked) : value;
    state.set(name === "method" ? changesTo(text, state.values) : { [name]: text });
  });

  state.follow((values) => {
    const { method } = values;
    const signed = isSigned(method);
    const colours = [["", signed ? "diverging" : "viridis"], ...COLORMAPS.slice(signed ? 0 : 1).map((name) => [name, name])];
    explain(method);
    for (const choice of elements.method) choice.parentElement.hidden = !isOffered(choice.value, values, classes.labels);
    offer(byId("layer"), [...METHODS[method].layers, ...Array(shape.layers).keys()].map((value) => step("layer", value)));
    offer(byId("head"), [...HEAD_NAMES, ...Array(shape.heads).keys()].map((value) => step("head", value)));
    offer(elements.colormap, options(colours));
    byId("why").hidden = !isOfLabel(method);
    showLabel(classes.explained(values));
    showAgainst(values.against);
    for (const control of elements) {
      if (!(control.name in values) || control.list) continue;
      const value = control.name === "layer" ? layerOf(values, shape) : values[control.name];
      const host = control.closest(".steps, .appearance label");
      if (host) host.hidden = isIdle(control.name, values);
      if (control.type === "radio") control.checked = control.value === value;
      else if (control.type === "checkbox") control.checked = value === "true";
      else control.value = value;
    }
    byId("alpha-value").textContent = `${Math.round(Number(values.alpha) * 100)} %`;
  });
}

function methodChoice(name, model) {
  const seconds = secondsOf(name, model);
  const said = seconds ? `, ${seconds.toFixed(seconds < 10 ? 1 : 0)} s` : "";
  return step("method", name, `${METHODS[name].title}${said}`);
}

/** One of a row of choices. */
const step = (name, value, said = value) =>
  element("label", {}, element("input", { type: "radio", name, value }), element("span", {}, said));

/** Give a list other choices, after its legend if it has one. */
function offer(list, choices) {
  const now = choices.map((choice) => choice.textContent).join();
  if (list.dataset.offered === now) return; // replacing them would take the focus, or close an open list
  list.dataset.offered = now;
  list.replaceChildren(...list.querySelectorAll("legend"), ...choices);
}
