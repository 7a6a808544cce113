// What the model is like without any picture: filters, positions, distances.

import { json } from "./api.js";
import { byId, element } from "./element.js";
import { addressOf } from "./fetched.js";

export async function showGallery() {
  const { pictures } = await json("/model/inspect");
  const addresses = await Promise.all(pictures.map(({ png }) => addressOf(png)));
  byId("gallery").replaceChildren(
    ...pictures.map(({ title, png, json: numbers }, i) =>
      element(
        "li",
        {},
        element("a", { href: png }, element("img", { src: addresses[i], alt: title, loading: "lazy" })),
        element("p", {}, title, " ", element("a", { href: numbers }, "numbers")),
      ),
    ),
  );
  byId("model-pictures").hidden = byId("to-model").hidden = pictures.length === 0;
}
