// Labels that a person types, for a model with a text tower: scores and evidence follow the typing.

import { ROOT, ask, imageOf } from "./api.js";
import { byId } from "./element.js";
import { labelRow } from "./labels.js";
import { changesToLabel } from "./maps.js";
import { showPart } from "./part.js";

const TYPED_MS = 300; // after the last key

/** The state has the phrase that is explained as its `label`, and the `prompt` that it stands in, which is empty for the
 * model's own labels.
 */
export function showPhrases(state) {
  const form = byId("phrases");
  const { labels, prompt } = form.elements;
  const template = () => prompt.value.trim() || "{}";
  const explain = (label) => state.set(changesToLabel(label, state.values, template()));
  const row = ({ label, score }) => labelRow({ key: label, name: label, score, choose: () => explain(label) });
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
      const typed = [...new Set(labels.value.split(",").map((text) => text.trim()).filter(Boolean))];
      const texts = new URLSearchParams({ labels: typed, prompt: template(), attention: "false" }).toString();
      const file = imageOf(id)?.file;
      const { predictions } = file && typed.length ? await ask(`${ROOT}classify?${texts}`, file, signal) : { predictions: [] };
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
}
