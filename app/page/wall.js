// The maps of all layers and heads. Each is a button that chooses its head.

import { showColorbar } from "./colorbar.js";
import { layerOf } from "./controls.js";
import { drawPatches } from "./draw.js";
import { byId, element } from "./element.js";
import { follow } from "./latest.js";
import { limitsOf, range } from "./limits.js";
import { endsOf, isOnWall, wallScale } from "./maps.js";
import { show } from "./picture.js";
import { beyond } from "./sentence.js";
import { isInside } from "./tabs.js";

export class Wall {
  #state;
  #shape;
  #wall = byId("wall");

  /** Shows what is in `stock`, all maps of an image. */
  constructor(state, shape, stock) {
    this.#state = state;
    this.#shape = shape;
    follow(state, ["id", "colormap", "interpolation"], {
      needed: isInside,
      load: ({ id }) => stock.load(id).then(() => stock.heads(id)),
      show: (maps, values) => this.#show(maps, values),
      busy: (said) => (byId("wall-status").textContent = said),
      fail: (problem) => {
        this.#wall.hidden = byId("wall-ramp").hidden = true;
        byId("wall-status").textContent = problem.message;
      },
    });
    state.addEventListener("change", () => this.#mark());
  }

  #show({ grid: [rows, columns], data }, { colormap, interpolation }) {
    const { layers, heads } = this.#shape;
    const found = limitsOf(data, () => data, "robust", false);
    const limits = endsOf(wallScale(found), found);
    const cell = (layer, head) => {
      const map = data.subarray((layer * heads + head) * rows * columns).subarray(0, rows * columns);
      return this.#cell(layer, head, drawPatches({ values: map, limits, grid: [rows, columns] }, colormap));
    };
    const count = (n) => [...Array(n).keys()];
    for (const [name, value] of Object.entries({ layers, heads, ratio: columns / rows })) this.#wall.style.setProperty(`--${name}`, value);
    this.#wall.classList.toggle("smooth", interpolation !== "nearest");
    this.#wall.replaceChildren(
      element("span"),
      ...count(heads).map((head) => element("span", {}, head)),
      ...count(layers).flatMap((layer) => [element("span", {}, layer), ...count(heads).map((head) => cell(layer, head))]),
    );
    const [min, max] = range(data);
    showColorbar(byId("wall-ramp"), { limits, min, max, colormap });
    this.#wall.hidden = byId("wall-ramp").hidden = false;
    byId("wall-status").textContent = beyond(data.filter((value) => value > limits[1]).length, data.length);
    this.#mark();
  }

  #cell(layer, head, pixels) {
    const canvas = element("canvas");
    show(canvas, pixels);
    const choose = () => this.#state.set({ method: "class_token", layer: String(layer), head: String(head) });
    return element("button", { type: "button", "aria-label": `Layer ${layer}, head ${head}`, onclick: choose }, canvas);
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
