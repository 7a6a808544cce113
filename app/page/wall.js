// The maps of all layers and heads, cut out of the server's sheet. Each is a button that chooses its head.

import { blob, json } from "./api.js";
import { showColorbar } from "./colorbar.js";
import { layerOf } from "./controls.js";
import { byId, element } from "./element.js";
import { follow } from "./latest.js";
import { endsOf, isOnWall, wallAddress, wallScale } from "./maps.js";
import { beyond } from "./sentence.js";
import { isInside } from "./tabs.js";

const TRIM = 1; // pixels of the sheet at each edge of a cell, where scaling lets the white gap in

export class Wall {
  #state;
  #shape;
  #sheet;
  #wall = byId("wall");

  constructor(state, shape) {
    this.#state = state;
    this.#shape = shape;
    follow(state, ["id", "colormap", "interpolation"], {
      needed: isInside,
      load: async (values, signal) => {
        const layout = await json(wallAddress(values, "json"), { signal });
        return [await blob(wallAddress(values, "png", layout.limits), { signal }), layout];
      },
      show: ([png, layout], values) => this.#show(png, layout, values.colormap),
      busy: (said) => (byId("wall-status").textContent = said),
      fail: (problem) => {
        this.#wall.hidden = byId("wall-ramp").hidden = true;
        byId("wall-status").textContent = problem.message;
      },
    });
    state.addEventListener("change", () => this.#mark());
  }

  #show(png, layout, colormap) {
    const { layers, heads, cell, size, min, max, limits } = layout;
    URL.revokeObjectURL(this.#sheet);
    this.#sheet = URL.createObjectURL(png);
    const style = { sheet: `url(${this.#sheet})`, layers, heads, ratio: cell[0] / cell[1] };
    style.size = `${(100 * size[0]) / (cell[0] - 2 * TRIM)}% ${(100 * size[1]) / (cell[1] - 2 * TRIM)}%`;
    for (const [name, value] of Object.entries(style)) this.#wall.style.setProperty(`--${name}`, value);
    const count = (n) => [...Array(n).keys()];
    this.#wall.replaceChildren(
      element("span"),
      ...count(heads).map((head) => element("span", {}, head)),
      ...count(layers).flatMap((layer) => [
        element("span", {}, layer),
        ...count(heads).map((head) => this.#cell(layer, head, layout)),
      ]),
    );
    showColorbar(byId("wall-ramp"), { limits: endsOf(wallScale(limits), limits), min, max, colormap });
    this.#wall.hidden = byId("wall-ramp").hidden = false;
    const outside = wallScale(limits) === layout.scale ? layout.beyond : 0;
    byId("wall-status").textContent = beyond(outside, layers * heads * layout.grid[0] * layout.grid[1]);
    this.#mark();
  }

  #cell(layer, head, { origin, cell, gap, size }) {
    const button = element("button", {
      type: "button",
      "aria-label": `Layer ${layer}, head ${head}`,
      onclick: () => this.#state.set({ method: "class_token", layer: String(layer), head: String(head) }),
    });
    const place = (at, axis) =>
      (100 * (origin[axis] + TRIM + at * (cell[axis] + gap))) / (size[axis] - cell[axis] + 2 * TRIM);
    button.style.backgroundPosition = `${place(head, 0)}% ${place(layer, 1)}%`;
    return button;
  }

  /** Only one cell is a stop of the Tab key; the arrow keys step through the others. */
  #mark() {
    const values = this.#state.values;
    const { heads } = this.#shape;
    const chosen = isOnWall(values) ? layerOf(values, this.#shape) * heads + Number(values.head) : -1;
    for (const [i, button] of this.#wall.querySelectorAll("button").entries()) {
      button.ariaPressed = String(i === chosen);
      button.tabIndex = i === Math.max(chosen, 0) ? 0 : -1;
    }
  }
}
