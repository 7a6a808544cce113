// Arrow keys step through layers and heads as on the wall: down is the next layer, right is the next head. A radio
// button, handle or list keeps its keys if the Tab key led to it, and not after a click.

import { layerOf } from "./controls.js";
import { byId } from "./element.js";
import { changesTo } from "./maps.js";
import { METHODS, isOffered, takes } from "./methods.js";

const STEPS = { ArrowUp: ["layer", -1], ArrowDown: ["layer", 1], ArrowLeft: ["head", -1], ArrowRight: ["head", 1] };
const TEXT = "textarea, input:not([type=radio], [type=range], [type=checkbox], [type=file])";
const KEEPS_KEYS = "select, [type=radio], [type=range]";

/** `next(step)` chooses the image so many after the chosen one. */
export function listenToKeys(state, { layers, heads, labels }, next) {
  const count = { layer: layers, head: heads };
  let tabbed = false; // to where the focus is
  addEventListener("pointerdown", () => (tabbed = false), true);

  function move(name, step) {
    const values = state.values;
    const now = name === "layer" ? layerOf(values, { layers }) : values.head;
    const next = /^\d+$/.test(now) ? Number(now) + step : step > 0 ? 0 : count[name] - 1;
    if (next >= 0 && next < count[name]) state.set({ [name]: String(next) });
  }

  addEventListener("keydown", (event) => {
    if (event.key === "Tab") tabbed = true;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest(tabbed ? `${TEXT}, ${KEEPS_KEYS}` : TEXT)) return;
    const values = state.values;
    if (event.key === "Escape" && event.target.matches("dfn")) event.target.blur();
    if (event.key === "?") byId("help").togglePopover();
    if (!values.id) return;
    const method = Object.keys(METHODS).filter((name) => isOffered(name, values, labels))[event.key - 1];
    if (method) state.set(changesTo(method, values));
    if (method && event.target.matches("[type=radio]")) event.target.blur(); // its ring would stay at the last method
    if (event.key === "j" || event.key === "k") next(event.key === "j" ? 1 : -1);
    if (event.key === "o") state.set({ beside: String(values.beside !== "true") });
    const [name, step] = STEPS[event.key] ?? [];
    const moves = name && takes(values.method, name);
    if (moves) move(name, step);
    if (moves || event.target.matches(KEEPS_KEYS)) event.preventDefault(); // neither scroll nor change the control
  });
}
