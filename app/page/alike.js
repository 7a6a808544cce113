// Two images: what makes them alike to the model, in each of them, with the parts that add up to the cosine.

import { json } from "./api.js";
import { mapCanvas } from "./draw.js";
import { byId, element } from "./element.js";
import { nearest } from "./embedding.js";
import { follow } from "./latest.js";
import { alikeAddress } from "./maps.js";
import { fixed } from "./numbers.js";
import { pictureOf } from "./picture.js";
import { receiptTable } from "./receipt.js";
import { isCompared } from "./tabs.js";

const MOST = 60; // images whose embeddings are compared
const SHOWN = 6;

/** `images` gives those that were added: [{id, name, source}]. The state has the `other` one, or it is the nearest. */
export function showAlike(state, images) {
  const nameOf = (id) => images().find((image) => image.id === id)?.name ?? "this image";

  const side = async (id, other, signal) => {
    const [numbers, picture] = await Promise.all([json(alikeAddress(id, other), { signal }), pictureOf(id)]);
    return { names: [id, other].map(nameOf), numbers, picture };
  };

  follow(state, ["id", "other", "added"], {
    needed: isCompared,
    load: async ({ id, other }, signal) => {
      const near = (await nearest(id, images().slice(0, MOST))).slice(0, SHOWN);
      const chosen = (other !== id && other) || near[0]?.id;
      if (!chosen) return { near };
      const pair = [[id, chosen], [chosen, id]].map(([one, two]) => side(one, two, signal));
      return { near, chosen, sides: await Promise.all(pair) };
    },
    show: ({ near, chosen, sides }) => {
      const item = ({ id, name, source, cosine }) =>
        element(
          "li",
          {},
          element(
            "button",
            { type: "button", "aria-pressed": String(id === chosen), onclick: () => state.set({ other: id }) },
            element("img", { src: source, alt: "" }),
            element("span", {}, name, element("b", {}, cosine.toFixed(3))),
          ),
        );
      byId("nearest").replaceChildren(...near.map(item));
      byId("pair").replaceChildren(...(sides ?? []).map(figure));
      byId("alike-said").textContent = sides ? said(sides[0].numbers) : "Add another image to see what the two have in common.";
    },
    busy: (sentence) => (byId("alike-said").textContent = sentence),
    fail: (problem) => {
      byId("pair").replaceChildren();
      byId("alike-said").textContent = problem.message;
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
