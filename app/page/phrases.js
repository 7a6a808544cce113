// Labels that a person types, for a model with a text tower: scores and evidence follow the typing.

import { ROOT, ask, imageOf } from "./api.js";
import { byId } from "./element.js";
import { labelRow } from "./labels.js";
import { Latest } from "./latest.js";
import { changesToLabel } from "./maps.js";

const TYPED_MS = 300; // after the last key

/** The state has the phrase that is explained as its `label`, and the `prompt` that it stands in, which is empty for the
 * model's own labels.
 */
export function showPhrases(state) {
  const form = byId("phrases");
  const { labels, prompt } = form.elements;
  const said = byId("phrases-said");
  const naming = new Latest();
  const template = () => prompt.value.trim() || "{}";
  let shown = ""; // the image and the texts

  function name(waitMs) {
    const { id } = state.values;
    const file = imageOf(id)?.file;
    const typed = labels.value.split(",").map((text) => text.trim()).filter(Boolean);
    const query = new URLSearchParams({ labels: typed, prompt: template(), attention: "false" });
    if (!file || !typed.length || shown === `${id} ${query}`) return;
    naming.run({
      waitMs,
      load: (signal) => ask(`${ROOT}classify?${query}`, file, signal),
      show: ({ predictions }) => {
        shown = `${id} ${query}`;
        byId("named").replaceChildren(...predictions.map(row));
        said.textContent = "";
        explain(predictions[0].label);
      },
      busy: (sentence) => (said.textContent = sentence),
      fail: (problem) => (said.textContent = problem.message),
    });
  }

  const row = ({ label, score }) => labelRow({ key: label, name: label, score, choose: () => explain(label) });

  function explain(label) {
    state.set(changesToLabel(label, state.values, template()));
    mark(state.values); // rows are new also where the label is not
  }

  function mark({ label, prompt }) {
    for (const button of byId("named").querySelectorAll("button")) button.ariaPressed = String(prompt !== "" && button.dataset.key === label);
  }

  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => name(TYPED_MS));
  state.follow(() => name(0), ["id"]);
  state.follow(mark);
}
