// Draws a map on its image, to a step of 255 as the service does: app/drawing/heatmap.py has the reasons.

import { colormapOf, loading } from "./colormaps.js";
import { canvasOf } from "./element.js";
import { enlarge } from "./resample.js";

const OUTSIDE_BRIGHTNESS = 0.45;
const PALING = 0.8;
const SIGNED_PALING = 1;
const PLAIN = { overlay: "true", fade: "true", alpha: 0.8, colormap: "", interpolation: "bilinear", threshold: "" };

const tables = await loading;

/** The map `numbers` (as JSON has it) on `picture`, ImageData of the whole upright image. `style`: overlay, fade, alpha,
 * colormap, interpolation, threshold, as the state has them. Returns ImageData.
 */
export function drawMap(numbers, picture, style) {
  const { values, limits, grid, spread } = numbers;
  const { width, height } = picture;
  const [left, top, right, bottom] = placeOf(numbers, picture);
  const size = [right - left, bottom - top];
  const signed = limits[0] < 0;
  const alpha = Number(style.alpha);
  const [overlay, fade] = [style.overlay === "true", style.fade === "true"];
  const table = tables[colormapOf(style.colormap, limits)];
  const unit = enlarge(unitOf(values, limits), grid, size, style.interpolation);
  const sure = spread && fade && enlarge(values.map((v, i) => +(Math.abs(v) > spread[i])), grid, size, style.interpolation);
  const drawn = new ImageData(width, height);
  const [from, to] = [picture.data, drawn.data];
  const kept = fade ? 1 - (signed ? SIGNED_PALING : PALING) * alpha : 0; // of the image's colours
  const pale = signed || fade;
  const dark = size[0] < width || size[1] < height ? OUTSIDE_BRIGHTNESS : 1;
  for (let y = 0, at = 0; y < height; y++)
    for (let x = 0; x < width; x++, at += 4) {
      const inside = x >= left && x < right && y >= top && y < bottom;
      const place = (y - top) * size[0] + x - left;
      const share = inside ? unit[place] : 0;
      const colour = 4 * rounded(255 * share);
      const grey = (19595 * from[at] + 38470 * from[at + 1] + 7471 * from[at + 2] + 0x8000) >> 16;
      const strength = (signed ? Math.abs(2 * share - 1) : share) * (sure && inside ? sure[place] : 1);
      const opacity = fade ? rounded(255 * alpha * Math.fround(strength)) : 0;
      for (let band = 0; band < 3; band++) {
        let under = from[at + band];
        if (pale) under = blend(grey, under, kept);
        const over = table[colour + band];
        if (!overlay) to[at + band] = inside ? over : 0;
        else if (!inside) to[at + band] = Math.round(dark * under);
        else if (fade) to[at + band] = Math.round((over * opacity + under * (255 - opacity)) / 255);
        else to[at + band] = blend(under, over, alpha);
      }
      to[at + 3] = overlay || inside ? 255 : 0;
    }
  if (style.threshold) outline(drawn, smallestHolding(values, Number(style.threshold)), grid, [left, top, right, bottom]);
  return drawn;
}

/** In the arithmetic of NumPy and Pillow: float32. */
const rounded = (number) => Math.round(Math.fround(number));

const blend = (one, other, share) => Math.trunc(Math.fround(one + Math.fround(Math.fround(share) * (other - one))));

/** A canvas, named `name`, with a map that is drawn as the service draws it. `style` has what differs from its defaults. */
export const mapCanvas = (numbers, picture, name, style = {}) =>
  canvasOf(drawMap(numbers, picture, { ...PLAIN, ...style }), { role: name && "img", "aria-label": name });

/** Numbers from 0 at the lower limit to 1 at the upper one; 0 where the map has no range. */
const unitOf = (values, [low, high]) =>
  Float32Array.from(values, (value) => (high === low ? 0 : Math.min(Math.max((value - low) / (high - low), 0), 1)));

/** A map alone, one pixel a patch. */
export function drawPatches({ values, limits, grid: [rows, columns] }, colormap) {
  const drawn = new ImageData(columns, rows);
  const table = tables[colormapOf(colormap, limits)];
  for (const [i, share] of unitOf(values, limits).entries()) {
    const colour = 4 * Math.round(255 * share);
    drawn.data.set(table.subarray(colour, colour + 4), 4 * i);
  }
  return drawn;
}

/** What the network saw, in pixels of a picture: at least one wide and high. */
function placeOf({ image, crop_box: [x0, y0, x1, y1] }, { width, height }) {
  const [x, y] = [width / image[0], height / image[1]];
  const [left, top] = [Math.min(Math.round(x0 * x), width - 1), Math.min(Math.round(y0 * y), height - 1)];
  return [left, top, Math.max(Math.round(x1 * x), left + 1), Math.max(Math.round(y1 * y), top + 1)];
}

/** Whether each patch is one of the fewest that together hold `share` of what is above zero. */
function smallestHolding(values, share) {
  const mass = values.map((value) => Math.max(value, 0));
  const all = mass.reduce((a, b) => a + b, 0);
  const held = new Uint8Array(mass.length);
  let sum = 0;
  for (const i of [...mass.keys()].sort((a, b) => mass[b] - mass[a])) {
    if (sum >= share * all || !mass[i]) break;
    held[i] = 1;
    sum += mass[i];
  }
  return held;
}

/** A light line inside and a dark one outside the border of the patches that are `held`. */
function outline({ data, width, height }, held, [rows, columns], [left, top, right, bottom]) {
  const inside = (x, y) =>
    x >= left && x < right && y >= top && y < bottom &&
    held[Math.floor(((y - top + 0.5) * rows) / (bottom - top)) * columns + Math.floor(((x - left + 0.5) * columns) / (right - left))];
  for (let y = Math.max(top - 1, 0); y < Math.min(bottom + 1, height); y++)
    for (let x = Math.max(left - 1, 0); x < Math.min(right + 1, width); x++) {
      const own = inside(x, y) ? 1 : 0;
      const differs = [-1, 0, 1].some((down) => [-1, 0, 1].some((across) => (inside(x + across, y + down) ? 1 : 0) !== own));
      if (differs) data.set(own ? [255, 255, 255, 255] : [0, 0, 0, 255], 4 * (y * width + x));
    }
}
