// What the model has learned, independent of any image: filters, positions, distances.

import { ROOT, imageSource, json } from "./api.js";
import { byId, element } from "./element.js";
import { Latest } from "./latest.js";

export function showGallery(state) {
  byId("to-model").addEventListener("click", () => {
    state.set({ tab: "inside" });
    byId("model-pictures").scrollIntoView();
  });
  new Latest().run({
    load: async () => {
      const { pictures } = await json(`${ROOT}model/inspect`);
      return [pictures, await Promise.all(pictures.map(({ png }) => imageSource(png)))];
    },
    show: ([pictures, sources]) => {
      byId("gallery").replaceChildren(...pictures.map((picture, i) => item(picture, sources[i])));
      byId("model-pictures").hidden = byId("to-model").hidden = pictures.length === 0;
    },
    fail: (problem) => {
      byId("gallery-status").textContent = problem.message;
      byId("model-pictures").hidden = false;
    },
  });
}

const item = ({ title, png, json: numbers }, source) =>
  element(
    "li",
    {},
    element("a", { href: png }, element("img", { src: source, alt: title, loading: "lazy" })),
    element("p", {}, element("a", { href: numbers, "aria-label": `Numbers: ${title}` }, "Numbers")), // the picture has its title
  );
