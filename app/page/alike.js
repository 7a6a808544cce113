// Two images: what makes them alike to the model, in each of them, with the parts that add up to the cosine.

import { json } from "./api.js";
import { drawMap } from "./draw.js";
import { byId, element } from "./element.js";
import { nearest } from "./embedding.js";
import { follow } from "./latest.js";
import { alikeAddress, endsOf } from "./maps.js";
import { fixed } from "./numbers.js";
import { pictureOf, show } from "./picture.js";
import { receiptTable } from "./receipt.js";
import { isCompared } from "./tabs.js";

const MOST = 60; // images whose embeddings are compared
const SHOWN = 6;
const STYLE = { overlay: "true", fade: "true", alpha: 0.8, colormap: "", threshold: "" };

/** `images` gives those that were added: [{id, name, source}]. The state has the `other` one, or it is the nearest. */
export function showAlike(state, images) {
  const nameOf = (id) => images().find((image) => image.id === id)?.name ?? "this image";

  const side = async (id, other, values, signal) => {
    const [numbers, picture] = await Promise.all([json(alikeAddress(id, other), { signal }), pictureOf(id)]);
    return { id, other, numbers, pixels: drawMap({ ...numbers, limits: endsOf(numbers.scale, numbers.limits) }, picture, { ...STYLE, ...values }) };
  };

  follow(state, ["id", "other", "added"], {
    needed: isCompared,
    load: async ({ id, other, interpolation }, signal) => {
      const near = (await nearest(id, images().slice(0, MOST))).slice(0, SHOWN);
      const chosen = (other !== id && other) || near[0]?.id;
      if (!chosen) return { near };
      const pair = [[id, chosen], [chosen, id]].map(([one, two]) => side(one, two, { interpolation }, signal));
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
      byId("pair").replaceChildren(...(sides ?? []).map((one) => figure(one, nameOf(one.id), nameOf(one.other))));
      byId("alike-said").textContent = sides ? said(sides[0].numbers) : "Add another image to see what the two have in common.";
    },
    busy: (sentence) => (byId("alike-said").textContent = sentence),
    fail: (problem) => {
      byId("pair").replaceChildren();
      byId("alike-said").textContent = problem.message;
    },
  });
}

function figure({ numbers: { receipt }, pixels }, name, other) {
  const canvas = element("canvas", { role: "img", "aria-label": `What makes ${name} like ${other}` });
  show(canvas, pixels);
  return element("figure", {}, canvas, element("figcaption", {}, element("b", {}, name), ` seen as like ${other}`), receiptTable(receipt, "Cosine"));
}

const said = ({ receipt }) =>
  "Red patches make the two alike, blue ones tell them apart. In both images the parts add up to " +
  `${fixed(receipt.cosine, 3)}, the cosine of the embeddings.`;
