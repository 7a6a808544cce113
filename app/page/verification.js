// Deletion and insertion curves: the map against random orders, measured on request.

import { json } from "./api.js";
import { chart } from "./chart.js";
import { byId, element } from "./element.js";
import { Latest } from "./latest.js";
import { verifyAddress } from "./maps.js";
import { percent } from "./numbers.js";

const KINDS = [
  ["deletion", "Deletion", "patches covered", "lower is better"],
  ["insertion", "Insertion", "patches uncovered", "higher is better"],
];
const FILLS = {
  mean: "the mean colour of the image",
  black: "black",
  gray: "grey",
  blur: "a blurred copy of the image",
};

export class Verification {
  #state;
  #classes;
  #address;
  #measuring = new Latest();

  constructor(state, classes) {
    this.#state = state;
    this.#classes = classes;
    byId("measure").addEventListener("click", () => this.#measure());
    state.addEventListener("change", () => {
      if (this.#address !== undefined && verifyAddress(state.values) !== this.#address) this.#clear();
    });
  }

  /** Remove a measurement that belongs to another map. */
  #clear() {
    this.#measuring.cancel();
    this.#address = undefined;
    this.#finish("");
    byId("curves").replaceChildren();
  }

  #measure() {
    this.#clear();
    this.#address = verifyAddress(this.#state.values);
    byId("measure").disabled = true;
    byId("verify-status").textContent = "Measuring …";
    this.#measuring.run({
      load: (signal) => json(this.#address, { method: "POST", signal }),
      show: (measured) => this.#show(measured),
      busy: (said) => (byId("verify-status").textContent = said),
      fail: (problem) => this.#finish(problem.message),
    });
  }

  #show(measured) {
    this.#finish("");
    byId("curves").replaceChildren(...KINDS.map((kind) => figure(measured, ...kind)));
    byId("verify-status").textContent = summary(this.#classes.named(measured, this.#state.values));
  }

  #finish(sentence) {
    byId("measure").disabled = false;
    byId("verify-status").textContent = sentence;
  }
}

function figure(measured, name, title, xLabel, better) {
  const { fractions, scores, random, area, random_area } = measured[name];
  const description = `${title}: the area is ${area.toFixed(3)}, in random order ${random_area.toFixed(3)}; ${better}.`;
  const lines = [
    { name: "random", xs: fractions, ys: random },
    { name: "map", xs: fractions, ys: scores },
  ];
  return element(
    "figure",
    {},
    element("figcaption", {}, element("b", {}, title), ` ${better}`),
    chart({ lines, xLabel, description }),
    element(
      "p",
      { class: "key" },
      element("span", { class: "map" }, `this map ${area.toFixed(3)}`),
      element("span", { class: "random" }, `random order ${random_area.toFixed(3)}`),
    ),
  );
}

function summary({ label, deletion, insertion, fill, steps, random_orders, chance }) {
  const better = [
    deletion.area < Math.min(...deletion.random_areas),
    insertion.area > Math.max(...insertion.random_areas),
  ];
  const won = better.filter(Boolean).length;
  const tests = ["neither test", "one of the two tests", "both tests"][won];
  return (
    `The map beats every random order in ${tests}, by the area under the score for “${label}”. ` +
    `A random map does so in both in ${percent(chance)}. ` +
    `The test used ${steps} steps and ${random_orders} random orders, and covered patches with ${FILLS[fill]}.`
  );
}
