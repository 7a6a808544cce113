// Tokens of the patches of images: how similar they are to one of them, and their principal components as three colours.

import { array } from "./api.js";
import { kept } from "./kept.js";
import { partAddress } from "./maps.js";

const KEPT = 24; // images
const SAMPLED = 1000; // patches from which components are found
const ROUNDS = 20; // of the iteration that finds them
const TRIMMED = 0.02; // of the numbers of a component at each end, which have the colour of the end

const images = kept(KEPT, load);

/** The tokens of an image, each of length 1: `data` has [rows × columns × features] numbers. */
export const tokensOf = (id) => images.get(id);

async function load(id) {
  const { shape, data } = await array(partAddress(id, "tokens?dtype=float16"));
  const [rows, columns, features] = shape.slice(-3);
  for (let at = 0; at < data.length; at += features) {
    const token = data.subarray(at, at + features);
    const length = Math.sqrt(dot(token, token)) || 1;
    for (let i = 0; i < features; i++) token[i] /= length;
  }
  return { grid: [rows, columns], count: rows * columns, features, data };
}

export const tokenAt = ({ data, features }, i) => data.subarray(i * features, (i + 1) * features);

/** The cosine of each patch with a token. */
export const similarities = (tokens, token) => Float32Array.from({ length: tokens.count }, (_, i) => dot(tokenAt(tokens, i), token));

/** Three numbers from 0 to 1 for each patch of several images: the same components for all. One Float32Array an image. */
export function threeColours(images) {
  const all = images.flatMap((tokens) => Array.from({ length: tokens.count }, (_, i) => tokenAt(tokens, i)));
  const mean = new Float32Array(images[0].features);
  for (const token of all) add(mean, token, 1 / all.length);
  const sample = all.filter((_, i) => i % Math.ceil(all.length / SAMPLED) === 0);
  const axes = components(sample, mean);
  const colours = images.map(({ count }) => new Float32Array(3 * count));
  for (const [band, axis] of axes.entries()) {
    const middle = dot(axis, mean);
    const places = images.map((tokens) => similarities(tokens, axis).map((place) => place - middle));
    const sorted = Float32Array.from(places.flatMap((some) => [...some])).sort();
    const [low, high] = [TRIMMED, 1 - TRIMMED].map((share) => sorted[Math.round(share * (sorted.length - 1))]);
    for (const [k, some] of places.entries()) for (const [i, place] of some.entries()) colours[k][3 * i + band] = Math.min(Math.max((place - low) / (high - low || 1), 0), 1);
  }
  return colours;
}

/** The three directions in which tokens differ most, by subspace iteration. */
function components(tokens, mean) {
  let axes = [0, 1, 2].map((k) => mean.map((_, i) => Math.sin((k + 1) * (i + 1)))); // any that are not alike
  for (let round = 0; round < ROUNDS; round++) {
    const sums = axes.map(() => new Float32Array(mean.length));
    const middles = axes.map((axis) => dot(axis, mean));
    for (const token of tokens) for (const [k, axis] of axes.entries()) add(sums[k], token, dot(token, axis) - middles[k]);
    axes = [];
    for (const sum of sums) {
      for (const axis of axes) add(sum, axis, -dot(sum, axis));
      const length = Math.sqrt(dot(sum, sum)) || 1;
      axes.push(sum.map((value) => value / length));
    }
  }
  return axes;
}

export function dot(one, other) {
  let sum = 0;
  for (let i = 0; i < one.length; i++) sum += one[i] * other[i];
  return sum;
}

function add(sum, vector, times) {
  for (let i = 0; i < sum.length; i++) sum[i] += times * vector[i];
}
