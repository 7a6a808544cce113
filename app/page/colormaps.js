// The colours of the maps: 256 for each colormap, from the table that the service draws with, and bars of them.

import { ROOT } from "./api.js";
import { element } from "./element.js";
import { significant } from "./numbers.js";

const NAMES = ["viridis", "inferno", "magma", "cividis", "turbo", "gray", "rdbu"]; // the rows of colormaps.png

/** The name of the colormap that is asked for, or of the one that suits the numbers between the `limits`. */
export const colormapOf = (asked, [low]) => asked || (low < 0 ? "rdbu" : "viridis");

/** The table of each colormap by its name: RGBA, 256 times. */
export const loading = (async () => {
  const answer = await fetch(`${ROOT}page/colormaps.png`);
  const bitmap = await createImageBitmap(await answer.blob(), { colorSpaceConversion: "none" });
  const canvas = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d", { willReadFrequently: true });
  canvas.drawImage(bitmap, 0, 0);
  return Object.fromEntries(NAMES.map((name, row) => [name, canvas.getImageData(0, row, 256, 1).data]));
})();

/** The colours between the `limits`, with these numbers; `min` and `max` of the map may lie beyond. */
export function showColorbar(node, { limits: [low, high], min, max, colormap }) {
  const first = `${min < low ? "< " : ""}${significant(low)}`;
  const last = `${max > high ? "> " : ""}${significant(high, { plus: low < 0 })}`;
  const row = NAMES.indexOf(colormapOf(colormap, [low])); // from the top of the table to its bottom
  const ramp = element("i", { style: { "background-position-y": `${(100 * row) / (NAMES.length - 1)}%` } });
  node.ariaLabel = `Colour bar from ${first} to ${last}`;
  node.replaceChildren(element("span", {}, first), ramp, element("span", {}, last));
}
