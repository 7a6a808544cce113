// What the model has learned, independent of any image: filters, positions, distances.

import { ROOT, imageSource, json } from "./api.js";
import { byId, element } from "./element.js";

export async function showGallery() {
  const { pictures } = await json(`${ROOT}model/inspect`);
  const sources = await Promise.all(pictures.map(({ png }) => imageSource(png)));
  byId("gallery").replaceChildren(
    ...pictures.map(({ title, png, json: numbers }, i) =>
      element(
        "li",
        {},
        element("a", { href: png }, element("img", { src: sources[i], alt: title, loading: "lazy" })),
        element("p", {}, title, " ", element("a", { href: numbers }, "numbers")),
      ),
    ),
  );
  byId("model-pictures").hidden = byId("to-model").hidden = pictures.length === 0;
}
