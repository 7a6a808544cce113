// What can be asked, before there is an image: the labels of the model, and for the demo samples of them.

import { blob } from "./api.js";
import { byId } from "./element.js";
import { say } from "./toast.js";

const NAMED = 20; // labels

/** `add(files)` is called with the sample that is chosen. */
export function showSamples(labels, add) {
  const others = labels.length - NAMED;
  const more = others > 0 ? `, and ${others.toLocaleString("en")} more` : "";
  byId("known").textContent = `${labels.length.toLocaleString("en")} labels: ${labels.slice(0, NAMED).join(", ")}${more}`;

  const samples = [...byId("samples").querySelectorAll("[data-sample]")];
  byId("samples").hidden = !samples.every(({ dataset }) => labels.includes(dataset.sample));
  byId("samples").addEventListener("click", async ({ target }) => {
    const image = target.closest("[data-sample]")?.querySelector("img");
    if (!image) return;
    try {
      add([new File([await blob(image.src)], image.src.split("/").at(-1), { type: "image/jpeg" })]);
    } catch (problem) {
      say(problem.message);
    }
  });
}
