// The most likely labels, with bars: the answer, and the others in small type below it. A click on one shows the evidence for it.

import { imageOf, json } from "./api.js";
import { breakable, byId, element } from "./element.js";
import { Latest } from "./latest.js";
import { changesToLabel, reportAddress } from "./maps.js";
import { isOfLabel } from "./methods.js";
import { percent } from "./numbers.js";
import { unlike } from "./sentence.js";

const SHORT = 18; // letters of an answer that fit beside the image in large type

/** Reports `likely` when `classes` have those of another image. */
export function showLabels(state, { manifest, least_familiarity: least }, classes) {
  const list = byId("labels");
  const asking = new Latest();

  function show(predictions, file) {
    const likely = [...predictions].sort((a, b) => b.score - a.score); // those of a report are in the order of the POST
    classes.likely = likely.map(({ index }) => index);
    list.replaceChildren(...likely.map(row));
    if (file) list.querySelector("button")?.prepend(element("span", { class: "file", title: file }, file));
    state.say("likely");
  }

  function row({ index, score }) {
    const key = classes.key(index);
    return labelRow({ key, name: classes.name(index), score, choose: () => state.set(changesToLabel(key, state.values)) });
  }

  state.follow(({ id }) => {
    const image = imageOf(id);
    const { predictions = [], familiarity = 1 } = image?.result ?? {};
    byId("unfamiliar").textContent = familiarity < least ? unlike(manifest.familiarity, familiarity) : "";
    show(predictions, image?.name);
    asking.cancel();
    if (id && !image) // it comes from a link
      asking.run({
        load: (signal) => json(reportAddress({ id, label: "" }), { signal }),
        show: (report) => show(report.predictions),
        fail() {}, // the map shows the reason
      });
  }, ["id", "end"]);

  /** Among the labels of the model, and among those that were typed and stand in a prompt. */
  function mark(labels, { method, label }, ofThese) {
    for (const [rank, button] of labels.querySelectorAll("button").entries()) {
      const chosen = label === "" ? rank === 0 : button.dataset.key === label;
      button.ariaPressed = String(isOfLabel(method) && chosen && ofThese);
    }
  }

  state.follow((values) => {
    mark(list, values, values.prompt === "");
    mark(byId("named"), values, values.prompt !== "");
  });
}

/** A label with its score as a bar, and a button that chooses it. */
export const labelRow = ({ key, name, score, choose }) =>
  element(
    "li",
    { class: name.length > SHORT ? "long" : null },
    element(
      "button",
      { type: "button", "data-key": key, title: `Show the evidence for “${name}”`, onclick: choose },
      element("span", { class: "name" }, breakable(name)),
      element("span", { class: "bar", style: { "--share": score } }),
      element("span", { class: "score" }, percent(score)),
    ),
  );
