// The image that maps are drawn on: from the person's file, which the browser has, or the one that the service keeps.

import { blob, imageOf, json } from "./api.js";
import { mapCanvas } from "./draw.js";
import { kept } from "./kept.js";
import { partAddress } from "./maps.js";

const LONGEST = 640; // pixels, as of the image that the service draws on
const KEPT = 12;

const pictures = kept(KEPT, load);

/** The picture of an image as ImageData: upright, and on white. */
export const pictureOf = (id) => pictures.get(id);

async function load(id) {
  const file = imageOf(id)?.file;
  const own = file && (await pixelsOf(file).catch(() => undefined)); // a format that this browser cannot draw
  return own ?? pixelsOf(await blob(partAddress(id, "image")));
}

/** A map of an image, from its address: its `numbers`, and a canvas that is named `name`. */
export async function loadMap(address, id, name, signal) {
  const [numbers, picture] = await Promise.all([json(address, { signal }), pictureOf(id)]);
  return { numbers, canvas: mapCanvas(numbers, picture, name) };
}

/** Shrunk by the whole factor that leaves at most `longest` pixels. */
export async function pixelsOf(file, longest = LONGEST) {
  const bitmap = await createImageBitmap(file);
  const factor = Math.ceil(Math.max(bitmap.width, bitmap.height) / longest);
  const size = [Math.ceil(bitmap.width / factor), Math.ceil(bitmap.height / factor)];
  const canvas = new OffscreenCanvas(...size).getContext("2d", { willReadFrequently: true });
  Object.assign(canvas, { imageSmoothingQuality: "high", fillStyle: "#fff" });
  canvas.fillRect(0, 0, ...size);
  canvas.drawImage(bitmap, 0, 0, ...size);
  bitmap.close();
  return canvas.getImageData(0, 0, ...size);
}
