// The maps of all layers and heads. Each is a button that chooses its head.

import { showColorbar } from "./colormaps.js";
import { layerOf } from "./controls.js";
import { drawPatches } from "./draw.js";
import { byId, canvasOf, element } from "./element.js";
import { limitsOf, range } from "./limits.js";
import { changesToHead, endsOf, isOnWall, wallScale } from "./maps.js";
import { showPart } from "./part.js";
import { beyond, isFlat } from "./sentence.js";

/** Shows what is in `stock`, all maps of an image. */
export function showWall(state, shape, stock) {
  const { layers, heads } = shape;
  const wall = byId("wall");

  showPart(state, "wall-part", {
    names: ["id", "colormap", "interpolation"],
    load: ({ id }) => stock.load(id).then(() => stock.heads(id)),
    show: ({ grid: [rows, columns], data }, { colormap, interpolation }) => {
      const found = limitsOf(data, () => data, "robust", false);
      const limits = endsOf(wallScale(found), found);
      const cell = (layer, head) => {
        const values = data.subarray((layer * heads + head) * rows * columns).subarray(0, rows * columns);
        const canvas = canvasOf(drawPatches({ values, limits, grid: [rows, columns] }, colormap));
        return element("button", { type: "button", "aria-label": `Layer ${layer}, head ${head}`, "data-layer": layer, "data-head": head }, canvas);
      };
      const count = (n) => [...Array(n).keys()];
      for (const [name, value] of Object.entries({ layers, heads, ratio: columns / rows })) wall.style.setProperty(`--${name}`, value);
      wall.classList.toggle("smooth", interpolation !== "nearest");
      wall.replaceChildren(
        ...["head", "layer"].map((title) => element("span", { class: "axis" }, title)),
        ...count(heads).map((head) => element("span", {}, head)),
        ...count(layers).flatMap((layer) => [element("span", {}, layer), ...count(heads).map((head) => cell(layer, head))]),
      );
      const [min, max] = range(data);
      showColorbar(byId("wall-ramp"), { limits, min, max, colormap });
      state.say("heads");
      if (isFlat(...found)) return "These maps are nearly flat: no number is twice another.";
      return beyond(data.filter((value) => value > limits[1]).length, data.length);
    },
  });
  for (const cells of [wall, byId("heads")])
    cells.addEventListener("click", ({ target }) => {
      const cell = target.closest("[data-head]");
      if (cell) state.set(changesToHead(cell.dataset.layer, cell.dataset.head, state.values));
    });
  state.follow((values) => mark(isOnWall(values) && `${layerOf(values, shape)} ${values.head}`));
}

/** Mark the head of the map among the cells that stand for one. Of buttons one alone is a stop of the Tab key; the arrow
 * keys step through the others.
 */
function mark(chosen) {
  for (const cell of byId("inside").querySelectorAll("[data-head]")) {
    const place = `${cell.dataset.layer} ${cell.dataset.head}`;
    cell.classList.toggle("chosen", place === chosen);
    if (cell.type !== "button") continue;
    cell.ariaPressed = String(place === chosen);
    cell.tabIndex = place === (chosen || "0 0") ? 0 : -1;
  }
}
