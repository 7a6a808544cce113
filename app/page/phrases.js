// Labels that a person types, for a model with a text tower: scores and evidence follow the typing, in all images.

import { ROOT, ask, imageOf, images } from "./api.js";
import { byId } from "./element.js";
import { labelRow } from "./labels.js";
import { patient } from "./latest.js";
import { changesToLabel } from "./maps.js";
import { showPart } from "./part.js";
import { atMost } from "./pool.js";

const TYPED_MS = 300; // after the last key
const AT_ONCE = 2; // images that are asked about

/** The state has the phrase that is explained as its `label`, and the `prompt` that it stands in, which is empty for the
 * model's own labels. In the view of all images each gets what is `typed`, {prompt, predictions}; reports `named`.
 */
export function showPhrases(state) {
  const form = byId("phrases");
  const { labels, prompt } = form.elements;
  const template = () => prompt.value.trim() || "{}";
  const explain = (label) => state.set(changesToLabel(label, state.values, template()));
  const row = ({ label, score }) => labelRow({ key: label, name: label, score, choose: () => explain(label) });
  const asking = atMost(AT_ONCE);
  const among = (texts, { file }, signal) => ask(`${ROOT}classify?${texts}`, file, signal);
  let round = { texts: "", asked: new Set() }; // of asking about all images
  let named = ""; // the texts
  let typing; // the timer that ends it

  form.hidden = false;
  form.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => state.say("typed"), TYPED_MS);
  });
  showPart(state, "phrases", {
    names: ["id", "typed"],
    load: async ({ id }, signal) => {
      const [texts, image] = [query(), imageOf(id)];
      const { predictions } = image && texts ? await among(texts, image, signal) : { predictions: [] };
      return { texts, predictions };
    },
    show: ({ texts, predictions }) => {
      byId("named").replaceChildren(...predictions.map(row));
      if (predictions.length && texts !== named) explain(predictions[0].label);
      named = texts;
      state.say("named");
      return predictions.length === 1 && predictions[0].score === 1 ? "One label alone always has 100 %." : "";
    },
  });

  /** The texts as the server takes them; empty without any. */
  function query() {
    const typed = [...new Set(labels.value.split(",").map((text) => text.trim()).filter(Boolean))];
    return typed.length ? new URLSearchParams({ labels: typed, prompt: template(), attention: "false" }).toString() : "";
  }

  async function name(image, begun) {
    if (begun !== round) return; // others were typed meanwhile
    const { texts, prompt, asked } = begun;
    const answer = texts && (await patient(() => among(texts, image)).catch(() => undefined));
    if (begun !== round) return;
    image.typed = answer ? { prompt, ...answer } : undefined;
    if (!answer) asked.delete(image); // it is asked about again after the next change
    state.say("named");
  }

  state.follow(({ tab }) => {
    const all = tab === "all";
    const below = byId(all ? "grid" : "controls");
    if (form.nextElementSibling !== below) below.before(form);
    if (!all) return;
    const texts = query();
    document.body.classList.toggle("typed", texts !== "");
    if (texts !== round.texts) round = { texts, prompt: template(), asked: new Set() };
    const begun = round;
    for (const image of images().filter((one) => !begun.asked.has(one) && (texts || one.typed))) {
      begun.asked.add(image);
      asking(() => name(image, begun));
    }
  }, ["tab", "typed", "added"]);
}
