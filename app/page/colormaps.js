// The colours of the maps: 256 for each colormap, from the table that the service draws with.

import { ROOT } from "./api.js";

const NAMES = ["viridis", "inferno", "magma", "cividis", "turbo", "gray", "rdbu"]; // the rows of colormaps.png

/** The name of the colormap that is asked for, or of the one that suits the numbers between the `limits`. */
export const colormapOf = (asked, [low]) => asked || (low < 0 ? "rdbu" : "viridis");

/** Where the row of a colormap lies in the table: 0 at the top, 1 at the bottom. */
export const placeOf = (name) => NAMES.indexOf(name) / (NAMES.length - 1);

/** The table of each colormap by its name: RGBA, 256 times. */
export const loading = (async () => {
  const answer = await fetch(`${ROOT}page/colormaps.png`);
  const bitmap = await createImageBitmap(await answer.blob(), { colorSpaceConversion: "none" });
  const canvas = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d", { willReadFrequently: true });
  canvas.drawImage(bitmap, 0, 0);
  return Object.fromEntries(NAMES.map((name, row) => [name, canvas.getImageData(0, row, 256, 1).data]));
})();
