// Addresses of the server's maps and numbers for the state of the page.

import { ROOT, idNow } from "./api.js";
import { METHODS, isOfLabel, takes } from "./methods.js";
import { isFlat } from "./sentence.js";

/** What changes with the method. The layer stays, unless attention follows evidence or the other way round. */
export const changesTo = (method, before) => ({
  method,
  colormap: "",
  ...(isOfLabel(method) !== isOfLabel(before.method) && { layer: "" }),
});
/** What changes when a label is chosen, or one that was typed and stands in a `prompt`. */
export function changesToLabel(label, before, prompt = "") {
  const fits = isOfLabel(before.method) && !(prompt && METHODS[before.method].passes);
  return { ...(fits || changesTo("evidence", before)), label, prompt, against: "", layer: "" };
}
/** What changes when an image is chosen. A label that was typed is explained in it too. */
export const changesToImage = (id, { label, prompt }) => ({ id, label: prompt && label, against: "", other: "" });
/** What changes when a head is chosen. */
export const changesToHead = (layer, head, before) => ({
  ...(before.method !== "class_token" && changesTo("class_token", before)),
  layer,
  head,
});
/** Whether a control changes nothing of the map that is shown. */
export const isIdle = (name, { method, overlay }) =>
  ["layer", "head"].includes(name) ? !takes(method, name) : ["alpha", "fade"].includes(name) && overlay !== "true";
/** Whether the map is one of those on the wall. */
export const isOnWall = ({ method, layer, head }) => method === "class_token" && layer !== "mean" && /^\d+$/.test(head);
/** Parameters that change the numbers of a map or their scale, and those that change only how it is drawn. */
export const NUMBERS = ["id", "method", "layer", "head", "label", "against", "prompt", "scale"];
export const STYLE = ["overlay", "fade", "alpha", "colormap", "interpolation", "threshold"];

const fitting = (range, scale) => (range && isFlat(...range) ? "absolute" : scale);

/** The scale asked for. Otherwise a map has its own range, a head has that of the wall, and no flat range is spread. */
export function scaleOf(values, numbers) {
  if (values.scale) return values.scale;
  if (isOnWall(values)) return fitting(numbers?.limits, "robust-shared");
  return fitting(numbers && [numbers.min, numbers.max], "robust");
}

/** The numbers of the first and the last colour, on that scale. */
export const endsOf = (scale, limits) => (scale === "absolute" ? [limits[0] < 0 ? -1 : 0, 1] : limits);

/** A map as JSON has it, between the ends of its colours. */
export const scaled = (numbers, values) => ({ ...numbers, limits: endsOf(scaleOf(values, numbers), numbers.limits) });

export const wallScale = (limits) => fitting(limits, "robust");

function address(path, values, names, extra = {}) {
  const set = names.filter((name) => values[name] !== "").map((name) => [name, values[name]]);
  return `${ROOT}attention/${encodeURIComponent(values.id)}${path}?${new URLSearchParams([...set, ...Object.entries(extra)])}`;
}

/** The map as png, json or npy; `numbers`: its JSON, once that is known; `passes`: where fewer are wanted than it takes. */
export function mapAddress(values, format, numbers, passes) {
  const names = ["method", ...METHODS[values.method].takes, ...(isOfLabel(values.method) && takes(values.method, "layer") ? ["prompt"] : []), ...(format === "png" ? STYLE : [])];
  return address("", values, names, { scale: scaleOf(values, numbers), format, ...(passes && { passes }) });
}

/** Evidence with its receipt, which adds up to the logit of a label or to the difference of two logits. */
export const receiptAddress = (values) =>
  address("", values, ["label", "against", "prompt"], { method: "evidence", format: "json" });

/** What there is of an image beside maps: all of these in one array, its embedding, its tokens, itself. */
export const partAddress = (id, part) => `${ROOT}attention/${encodeURIComponent(id)}/${part}`;

/** Evidence of an image for being like another one. */
export const alikeAddress = (id, other) =>
  address("", { id }, [], { method: "evidence", like: idNow(other), against: "nothing", format: "json" });

export const reportAddress = (values) => address("/report", values, values.prompt ? [] : ["label"]);

export const verifyAddress = (values) => address("/verify", values, ["method", ...METHODS[values.method].takes]);

/** `patches` to cover, or the `share` of them where the map is highest; `rest`: all but these. */
export function coverAddress(values, { patches, ...which }) {
  const extra = patches ? { patches, ...which } : which;
  const names = new Set(["label", "against", ...(patches ? [] : ["method", ...METHODS[values.method].takes])]);
  return address("/cover", values, [...names], extra).replaceAll("%2C", ","); // a proxy bounds the length of an address
}
