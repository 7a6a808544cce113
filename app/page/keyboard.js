// Arrow keys step through layers and heads as on the wall: down is the next layer, right is the next head.

import { layerOf } from "./controls.js";
import { byId } from "./element.js";
import { isOfLabel } from "./maps.js";

const STEPS = { ArrowUp: ["layer", -1], ArrowDown: ["layer", 1], ArrowLeft: ["head", -1], ArrowRight: ["head", 1] };
const METHODS = { 1: "class_token", 2: "rollout", 3: "evidence", 4: "positive_evidence" };

export function listenToKeys(state, { layers, heads }) {
  const count = { layer: layers, head: heads };

  function move(name, step) {
    const values = state.values;
    const now = name === "layer" ? layerOf(values, { layers }) : values.head;
    const next = /^\d+$/.test(now) ? Number(now) + step : step > 0 ? 0 : count[name] - 1;
    if (next >= 0 && next < count[name]) state.set({ [name]: String(next) });
  }

  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
    const values = state.values;
    if (event.key === "?") byId("help").togglePopover();
    if (!values.id) return;
    if (event.key in METHODS) state.set({ method: METHODS[event.key], layer: "", colormap: "" });
    if (event.key === "o") state.set({ beside: String(values.beside !== "true") });
    const [name, step] = STEPS[event.key] ?? [];
    const moves = name && values.method !== "rollout" && !(name === "head" && isOfLabel(values.method));
    if (!moves) return;
    event.preventDefault(); // otherwise the page scrolls
    move(name, step);
  });
}
