// What can be asked, before there is an image: the labels of the model, and for the demo samples of them.

import { ROOT, blob } from "./api.js";
import { byId, element } from "./element.js";

const SAMPLES = ["a star", "a heart", "an arrow", "a bolt", "an hourglass", "a crescent"];
const WRONG = "crescent"; // the model gets this one wrong
const NAMED = 20; // labels

/** The sample that is chosen is added to the `queue`. */
export function showSamples(labels, queue) {
  const others = labels.length - NAMED;
  const more = others > 0 ? `, and ${others.toLocaleString("en")} more` : "";
  byId("known").textContent = `${labels.length.toLocaleString("en")} labels: ${labels.slice(0, NAMED).join(", ")}${more}`;

  const samples = SAMPLES.map((title) => [title, title.split(" ")[1]]);
  if (!samples.every(([, name]) => labels.includes(name))) return;
  byId("samples").hidden = false;
  for (const [title, name] of samples) {
    const image = element("img", { src: `${ROOT}page/samples/${name}.jpg`, alt: `Sample: ${title}${name === WRONG ? ", which the model gets wrong" : ""}` });
    const choose = async () => {
      try {
        queue.add([new File([await blob(image.src)], `${name}.jpg`, { type: "image/jpeg" })]);
      } catch (problem) {
        queue.say(problem.message);
      }
    };
    const button = element("button", { type: "button", "data-sample": name, "data-said": name === WRONG ? "it gets this one wrong: see why" : name, onclick: choose }, image);
    byId("samples").lastElementChild.append(element("li", {}, button));
  }
}
