// The colours of a map and the numbers at their ends.

import { colormapOf, placeOf } from "./colormaps.js";
import { element } from "./element.js";
import { significant } from "./numbers.js";

/** `limits`: the numbers of the first and the last colour; `min` and `max`: those of the map, which may lie beyond. */
export function showColorbar(node, { limits: [low, high], min, max, colormap }) {
  const signed = low < 0;
  const first = `${min < low ? "< " : ""}${significant(low)}`;
  const last = `${max > high ? "> " : ""}${significant(high, { plus: signed })}`;
  const ramp = element("i", { style: { "background-position-y": `${100 * placeOf(colormapOf(colormap, [low]))}%` } });
  node.ariaLabel = `Colour bar from ${first} to ${last}`;
  node.replaceChildren(element("span", {}, first), ramp, element("span", {}, last));
}
