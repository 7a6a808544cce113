// What can be asked, before there is an image: the labels of the model, and for the demo samples of them.

import { blob } from "./api.js";
import { byId } from "./element.js";

const NAMED = 20; // labels

/** The sample that is chosen is added to the `queue`. */
export function showSamples(labels, queue) {
  const others = labels.length - NAMED;
  const more = others > 0 ? `, and ${others.toLocaleString("en")} more` : "";
  byId("known").textContent = `${labels.length.toLocaleString("en")} labels: ${labels.slice(0, NAMED).join(", ")}${more}`;

  const samples = [...byId("samples").querySelectorAll("[data-sample]")];
  byId("samples").hidden = !samples.every(({ dataset }) => labels.includes(dataset.sample));
  byId("samples").addEventListener("click", async ({ target }) => {
    const image = target.closest("[data-sample]")?.querySelector("img");
    if (!image) return;
    try {
      queue.add([new File([await blob(image.src)], image.src.split("/").at(-1), { type: "image/jpeg" })]);
    } catch (problem) {
      queue.say(problem.message);
    }
  });
}
