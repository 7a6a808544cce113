// Two images: what makes them alike to the model, in each of them, with the parts that add up to the cosine.

import { imageOf, images } from "./api.js";
import { byId, element, figure, imageButton } from "./element.js";
import { nearest } from "./embedding.js";
import { alikeAddress } from "./maps.js";
import { fixed } from "./numbers.js";
import { showPart } from "./part.js";
import { loadMap } from "./picture.js";
import { receiptTable } from "./receipt.js";

const MOST = 60; // images whose embeddings are compared
const SHOWN = 6;

/** The state has the `other` image, or it is the nearest. */
export function showAlike(state) {
  const item = ({ id, name, source, cosine }, chosen) => {
    const said = element("span", {}, name, element("b", {}, fixed(cosine, 3)));
    return imageButton({ source, "aria-pressed": String(id === chosen), onclick: () => state.set({ other: id }) }, said);
  };

  showPart(state, "alike-part", {
    names: ["id", "other", "added"],
    load: async ({ id, other }, signal) => {
      const near = (await nearest(id, images().slice(0, MOST))).slice(0, SHOWN);
      const chosen = (other !== id && other) || near[0]?.id;
      const sides = chosen ? [side(id, chosen, signal), side(chosen, id, signal)] : [];
      return { near, chosen, sides: await Promise.all(sides) };
    },
    show: ({ near, chosen, sides }) => {
      byId("nearest").replaceChildren(...near.map((image) => item(image, chosen)));
      byId("pair").replaceChildren(...sides.map((one) => one.figure));
      return chosen ? said(sides[0].numbers) : "Add another image to see what the two have in common.";
    },
  });
}

async function side(id, other, signal) {
  const [name, like] = [id, other].map((one) => imageOf(one)?.name ?? "this image");
  const { numbers, canvas } = await loadMap(alikeAddress(id, other), id, `What makes ${name} like ${like}`, signal);
  return { numbers, figure: figure(name, `seen as like ${like}`, canvas, receiptTable(numbers.receipt, "Cosine")) };
}

const said = ({ receipt }) =>
  "Red patches make the two alike, blue ones tell them apart. In both images the parts add up to " +
  `${fixed(receipt.cosine, 3)}, the cosine of the embeddings.`;
