// Two images: what makes them alike to the model, in each of them, with the parts that add up to the cosine.

import { imageOf, images, json } from "./api.js";
import { mapCanvas } from "./draw.js";
import { byId, element } from "./element.js";
import { nearest } from "./embedding.js";
import { alikeAddress } from "./maps.js";
import { fixed } from "./numbers.js";
import { showPart } from "./part.js";
import { pictureOf } from "./picture.js";
import { receiptTable } from "./receipt.js";

const MOST = 60; // images whose embeddings are compared
const SHOWN = 6;

const nameOf = (id) => imageOf(id)?.name ?? "this image";

/** The state has the `other` image, or it is the nearest. */
export function showAlike(state) {
  const side = async (id, other, signal) => {
    const [numbers, picture] = await Promise.all([json(alikeAddress(id, other), { signal }), pictureOf(id)]);
    return { names: [id, other].map(nameOf), numbers, picture };
  };

  const item = ({ id, name, source, cosine }, chosen) =>
    element(
      "li",
      {},
      element(
        "button",
        { type: "button", "aria-pressed": String(id === chosen), onclick: () => state.set({ other: id }) },
        element("img", { src: source, alt: "" }),
        element("span", {}, name, element("b", {}, fixed(cosine, 3))),
      ),
    );

  showPart(state, "alike-part", {
    names: ["id", "other", "added"],
    load: async ({ id, other }, signal) => {
      const near = (await nearest(id, images().slice(0, MOST))).slice(0, SHOWN);
      const chosen = (other !== id && other) || near[0]?.id;
      const pair = chosen ? [[id, chosen], [chosen, id]] : [];
      return { near, chosen, sides: await Promise.all(pair.map(([one, two]) => side(one, two, signal))) };
    },
    show: ({ near, chosen, sides }) => {
      byId("nearest").replaceChildren(...near.map((image) => item(image, chosen)));
      byId("pair").replaceChildren(...sides.map(figure));
      return chosen ? said(sides[0].numbers) : "Add another image to see what the two have in common.";
    },
  });
}

function figure({ numbers, picture, names: [name, other] }) {
  const canvas = mapCanvas(numbers, picture, `What makes ${name} like ${other}`);
  const caption = element("figcaption", {}, element("b", {}, name), ` seen as like ${other}`);
  return element("figure", {}, canvas, caption, receiptTable(numbers.receipt, "Cosine"));
}

const said = ({ receipt }) =>
  "Red patches make the two alike, blue ones tell them apart. In both images the parts add up to " +
  `${fixed(receipt.cosine, 3)}, the cosine of the embeddings.`;
