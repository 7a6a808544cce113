// The maps of all layers and heads. A click shows one of them above.

import { blob, json } from "./api.js";
import { layerOf } from "./controls.js";
import { byId } from "./element.js";
import { DEBOUNCE_MS, Latest } from "./latest.js";
import { wallAddress } from "./maps.js";

export class Wall {
  #state;
  #shape;
  #layout;
  #drawing = new Latest();
  #image = byId("wall").querySelector("img");
  #cell = byId("cell");

  constructor(state, shape) {
    this.#state = state;
    this.#shape = shape;
    state.addEventListener("change", ({ detail }) => {
      if (["id", "colormap", "interpolation"].some((name) => detail.has(name))) this.draw();
      this.#mark();
    });
    this.#image.addEventListener("click", (event) => this.#choose(event));
    this.#image.addEventListener("load", () => this.#mark());
  }

  draw() {
    const values = this.#state.values;
    if (!values.id) return;
    this.#drawing.run({
      waitMs: 2 * DEBOUNCE_MS,
      load: (signal) =>
        Promise.all([blob(wallAddress(values, "png"), { signal }), json(wallAddress(values, "json"), { signal })]),
      show: ([png, layout]) => {
        this.#layout = layout;
        URL.revokeObjectURL(this.#image.src);
        this.#image.src = URL.createObjectURL(png);
        byId("wall").hidden = false;
        byId("wall-status").textContent = "";
      },
      fail: (problem) => {
        byId("wall").hidden = true;
        byId("wall-status").textContent = problem.message;
      },
    });
  }

  #choose({ offsetX, offsetY }) {
    const { origin, cell, gap, size, layers, heads } = this.#layout;
    const scale = size[0] / this.#image.clientWidth;
    const head = Math.floor((offsetX * scale - origin[0]) / (cell[0] + gap));
    const layer = Math.floor((offsetY * scale - origin[1]) / (cell[1] + gap));
    if (layer < 0 || head < 0 || layer >= layers || head >= heads) return;
    this.#state.set({ method: "class_token", layer: String(layer), head: String(head) });
  }

  /** Outline the map shown above, in per cent of the wall, so that the outline fits at any width. */
  #mark() {
    const values = this.#state.values;
    const layer = layerOf(values, this.#shape);
    const single = values.method === "class_token" && /^\d+$/.test(layer) && /^\d+$/.test(values.head);
    this.#cell.hidden = !single || !this.#layout;
    if (this.#cell.hidden) return;
    const { origin, cell, gap, size } = this.#layout;
    const at = [origin[0] + Number(values.head) * (cell[0] + gap), origin[1] + Number(layer) * (cell[1] + gap)];
    Object.assign(this.#cell.style, {
      left: `${(100 * at[0]) / size[0]}%`,
      top: `${(100 * at[1]) / size[1]}%`,
      width: `${(100 * cell[0]) / size[0]}%`,
      height: `${(100 * cell[1]) / size[1]}%`,
    });
  }
}
