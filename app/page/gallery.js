// What the model has learned, independent of any image: filters, positions, distances.

import { ROOT, imageSource, json } from "./api.js";
import { byId, element } from "./element.js";

export async function showGallery(state) {
  byId("to-model").addEventListener("click", () => state.set({ tab: "inside" }));
  const { pictures } = await json(`${ROOT}model/inspect`);
  const sources = await Promise.all(pictures.map(({ png }) => imageSource(png)));
  byId("gallery").replaceChildren(
    ...pictures.map(({ title, png, json: numbers }, i) =>
      element(
        "li",
        {},
        element("a", { href: png }, element("img", { src: sources[i], alt: title, loading: "lazy" })),
        element("p", {}, element("a", { href: numbers, "aria-label": `Numbers: ${title}` }, "Numbers")), // the picture has its title
      ),
    ),
  );
  byId("model-pictures").hidden = byId("to-model").hidden = pictures.length === 0;
}
