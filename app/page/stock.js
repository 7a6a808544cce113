// All maps of an image come in one array. Another method, layer, head or label then takes no request. The service is
// asked for what the array lacks, such as a label that is not likely.

import { array } from "./api.js";
import { layerOf } from "./controls.js";
import { kept } from "./kept.js";
import { limitsOf, range } from "./limits.js";
import { partAddress, scaleOf } from "./maps.js";
import { isOfLabel, isSigned } from "./methods.js";

const KEPT = 12; // images
const EXACT = 2 ** 17; // bytes; more come as float16

/** `shape`: the manifest of the model. */
export function stockOf(shape, classes) {
  const { layers, heads, tokens, explains } = shape;
  const first = layers * heads + 1; // map of a class; before it are those of the heads, and rollout
  const count = first + (explains.classes?.[0] ?? 0) * layers;
  const dtype = 4 * count * tokens.grid[0] * tokens.grid[1] > EXACT ? "float16" : "float32";
  const images = kept(KEPT, (id) => array(partAddress(id, `maps?dtype=${dtype}`)));

  /** The numbers, and what gives those of all maps that a shared scale compares it with. */
  function attention(maps, { id, method, head }, layer) {
    const rollout = one(maps, layers * heads);
    if (method === "rollout") return [rollout, () => rollout];
    const ofLayer = (l) => {
      if (/\d/.test(head)) return one(maps, l * heads + Number(head));
      return reduced(several(heads, (h) => one(maps, l * heads + h)), head);
    };
    return [layer === "mean" ? reduced(several(layers, ofLayer), "mean") : ofLayer(Number(layer)), () => ofHeads(id).data];
  }

  function evidence(maps, method, layer, own, other) {
    const rollout = one(maps, layers * heads);
    const ofClass = (k) =>
      several(layers, (l) => {
        const less = other < 0 ? undefined : one(maps, first + other * layers + l);
        const numbers = one(maps, first + k * layers + l).map((value, i) => value - (less?.[i] ?? 0));
        return method === "evidence" ? numbers : numbers.map((value, i) => Math.max(value, 0) * rollout[i]);
      });
    const each = ofClass(own);
    const siblings = () => {
      const all = other < 0 ? several((maps.shape[0] - first) / layers, ofClass) : [each];
      return all.flatMap((rows) => [...rows, reduced(rows, "sum")].flatMap((row) => [...row]));
    };
    return [/\d/.test(layer) ? each[layer] : reduced(each, layer), siblings];
  }

  /** The heads of all layers of an image that is there: [layers × heads] maps, one after the other. */
  function ofHeads(id) {
    const { shape: [, rows, columns], data } = images.now(id);
    return { grid: [rows, columns], data: data.subarray(0, layers * heads * rows * columns) };
  }

  /** The map for the state's `values` as JSON has it, or undefined, of an image whose size and `crop_box` are known. */
  function map(values, { image, crop_box }) {
    const maps = images.now(values.id);
    const explained = classes.likely.slice(0, explains.classes?.[0]);
    const index = classes.index(classes.explained(values));
    const [own, other] = [index, classes.index(values.against)].map((k) => explained.indexOf(k));
    const ofLabel = isOfLabel(values.method);
    const [layer, { method, head }] = [layerOf(values, shape), values];
    const missing = ofLabel && (own < 0 || values.prompt || (values.against && other < 0));
    if (!maps || method === "measured" || missing || !(isOne(layer, layers) && isOne(head, heads))) return undefined;
    const [numbers, siblings] = ofLabel ? evidence(maps, method, layer, own, other) : attention(maps, values, layer);
    const [min, max] = range(numbers);
    const sum = numbers.reduce((a, b) => a + b, 0);
    const limits = limitsOf(numbers, siblings, scaleOf(values), isSigned(method));
    const labels = ofLabel ? { label: "", index, against: values.against || null } : {}; // by their keys: see Classes.named
    const place = /\d/.test(layer) ? Number(layer) : layer;
    return { method, layer: place, head, grid: maps.shape.slice(1), values: numbers, limits, min, max, sum, image, crop_box, ...labels };
  }

  /** `load(id)`: the maps of an image, loaded once. */
  return { load: images.get, heads: ofHeads, map };
}

const one = ({ shape: [, rows, columns], data }, i) => data.subarray(i * rows * columns, (i + 1) * rows * columns);

/** Whether a text is a number below `count`, or the name of a mean and the like. */
const isOne = (text, count) => (/^\d+$/.test(text) ? Number(text) < count : ["sum", "mean", "max", "min"].includes(text));

const several = (count, make) => Array.from({ length: count }, (_, i) => make(i));

/** The mean, sum, largest or smallest of several maps, patch by patch. */
function reduced(maps, how) {
  const all = { max: Math.max, min: Math.min }[how] ?? ((a, b) => a + b);
  return maps[0].map((_, i) => maps.map((map) => map[i]).reduce((a, b) => all(a, b)) / (how === "mean" ? maps.length : 1));
}
