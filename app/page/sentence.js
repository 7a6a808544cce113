// What the map shows, in one sentence that needs no knowledge of the method.

import { significant } from "./numbers.js";

const LOOKS = { mean: "the model looks", max: "at least one head looks", min: "all heads look" };

/** Whether the largest of positive numbers is less than twice the smallest: their differences say next to nothing. */
export const isFlat = (low, high) => low > 0 && high < 2 * low;

/** `numbers`: the map as JSON; `colormap`: as the state has it. */
export function sentence({ method, layer, head, label, against, passes, min, max }, colormap) {
  const [low, high] = max < 0 ? [-max, -min] : [min, max];
  if (isFlat(low, high)) return `This map is nearly flat: its largest number is ${significant(high / low)} times its smallest.`;
  const colored = ["", "turbo", "rdbu"].includes(colormap);
  const [plus, minus] = colored ? ["red", "blue"] : ["bright", "dark"];
  const place = layer === "sum" ? "" : `${placeOf(layer)}, `;
  const [other, above, more] = against ? [`for “${against}”`, ` above “${against}”`, ` more than for “${against}”`] : ["against it", "", ""];
  const bright = colormap && colored ? "red" : "bright";
  const said = {
    evidence: `${place}${plus} patches speak for “${label}”, ${minus} ones ${other}.`,
    positive_evidence: `${place}${bright} patches speak for “${label}”${more}. What speaks against it is left out.`,
    measured: `${plus} patches raise “${label}”${above}, ${minus} ones lower it, by ${passes} passes.`,
    rollout: `${bright} patches are where the model looks, through all layers together.`,
    class_token: `${bright} patches are where ${LOOKS[head] ?? `head ${head} looks`} ${placeOf(layer)}.`,
  };
  return capital(said[method]);
}

/** What evidence adds up to. */
export const subject = (label, against) =>
  against ? `the lead of “${label}” over “${against}”` : `the logit for “${label}”`;

/** How many numbers the colours do not tell apart. Empty if they tell apart all. */
export const beyond = (count, all) =>
  count ? `${count} of ${all} numbers ${count === 1 ? "lies" : "lie"} beyond the ends of the colours.` : "";

/** How much of the image the network did not see. Empty if it saw all. */
export function cropped({ image: [width, height], crop_box: [left, top, right, bottom] }) {
  const seen = ((right - left) * (bottom - top)) / (width * height);
  return seen > 0.995 ? "" : `The model saw ${Math.round(100 * seen)} % of this image. The rest was cropped away.`;
}

const ROUNDING = 1e-9; // 100 - 100 * 0.07 is less than 93

/** Said of an image that is less familiar than most that the model knows: `familiarity` is a share of those held out. */
export const unlike = ({ pictures, held_out: others }, familiarity) =>
  `This image is unlike the ${pictures} images that the model was shown: it is less familiar than ` +
  `${Math.floor(100 - 100 * familiarity + ROUNDING)} % of the ${others} that were held out. Its labels may mean nothing.`;

const placeOf = (layer) => (layer === "mean" ? "on average over the layers" : `in layer ${layer}`);

const capital = (text) => text[0].toUpperCase() + text.slice(1);
