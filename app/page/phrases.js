// Labels that a person types, for a model with a text tower: scores and evidence follow the typing.

import { ROOT, json, sentAs } from "./api.js";
import { byId } from "./element.js";
import { labelRow } from "./labels.js";
import { Latest } from "./latest.js";
import { isOfLabel } from "./methods.js";

const TYPED_MS = 300; // after the last key

/** The state has the phrase that is explained as its `label`, and the `prompt` that it stands in, which is empty for the
 * model's own labels.
 */
export function showPhrases(state) {
  const form = byId("phrases");
  const { labels, prompt } = form.elements;
  const naming = new Latest();
  let shown = ""; // the image and the texts
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => name(TYPED_MS));
  state.addEventListener("change", ({ detail }) => (detail.has("id") ? name(0) : mark()));

  function name(waitMs) {
    const { id } = state.values;
    const { file } = sentAs(id);
    const typed = labels.value.split(",").map((text) => text.trim()).filter(Boolean);
    const query = new URLSearchParams({ labels: typed, prompt: prompt.value.trim() || "{}", attention: "false" });
    if (!file || !typed.length || shown === `${id} ${query}`) return;
    naming.run({
      waitMs,
      load: (signal) => json(`${ROOT}classify?${query}`, { method: "POST", body: file, headers: { "Content-Type": "application/octet-stream" }, signal }),
      show: ({ results: [{ predictions }] }) => {
        shown = `${id} ${query}`;
        byId("named").replaceChildren(...predictions.map(row));
        byId("phrases-said").textContent = "";
        explain(predictions[0].label);
      },
      busy: (said) => (byId("phrases-said").textContent = said),
      fail: (problem) => (byId("phrases-said").textContent = problem.message),
    });
  }

  const row = ({ label, score }) => labelRow({ key: label, name: label, score, choose: () => explain(label) });

  function explain(label) {
    const { method } = state.values;
    state.set({ method: isOfLabel(method) && method !== "measured" ? method : "evidence", label, prompt: prompt.value.trim() || "{}", against: "", layer: "" });
    mark();
  }

  function mark() {
    const { label, prompt } = state.values;
    for (const button of byId("named").querySelectorAll("button")) button.ariaPressed = String(prompt !== "" && button.dataset.key === label);
  }
}
