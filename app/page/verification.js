// Deletion and insertion: the map against chance, measured when asked for.

import { json } from "./api.js";
import { chart } from "./chart.js";
import { byId, element } from "./element.js";
import { Latest } from "./latest.js";
import { verifyAddress } from "./maps.js";

const KINDS = [
  ["deletion", "Removing patches", "patches removed", "lower is better"],
  ["insertion", "Bringing them back", "patches brought back", "higher is better"],
];
const FILLS = {
  mean: "patches covered with the picture’s mean colour",
  black: "patches covered with black",
  gray: "patches covered with grey",
  blur: "patches blurred",
};

export class Verification {
  #state;
  #address;
  #measuring = new Latest();

  constructor(state) {
    this.#state = state;
    byId("measure").addEventListener("click", () => this.#measure());
    state.addEventListener("change", () => {
      if (this.#address !== undefined && verifyAddress(state.values) !== this.#address) this.#clear();
    });
  }

  /** What was measured is of another map. */
  #clear() {
    this.#measuring.cancel();
    this.#address = undefined;
    this.#settle("");
    byId("curves").replaceChildren();
  }

  #measure() {
    this.#clear();
    this.#address = verifyAddress(this.#state.values);
    byId("measure").disabled = true;
    byId("verify-says").textContent = "Measuring …";
    this.#measuring.run({
      load: (signal) => json(this.#address, { method: "POST", signal }),
      show: (measured) => this.#show(measured),
      fail: (problem) => this.#settle(problem.message),
    });
  }

  #show(measured) {
    this.#settle("");
    byId("curves").replaceChildren(...KINDS.map((kind) => figure(measured, ...kind)));
    byId("verify-says").textContent = verdict(measured);
  }

  #settle(sentence) {
    byId("measure").disabled = false;
    byId("verify-says").textContent = sentence;
  }
}

function figure(measured, name, title, across, better) {
  const { fractions, scores, random, area, random_area } = measured[name];
  const says = `${title}: area ${area.toFixed(3)}, at random ${random_area.toFixed(3)}; ${better}.`;
  const lines = [
    { name: "chance", xs: fractions, ys: random },
    { name: "map", xs: fractions, ys: scores },
  ];
  return element(
    "figure",
    {},
    element("figcaption", {}, element("b", {}, title), ` ${better}`),
    chart({ lines, across, says }),
    element(
      "p",
      { class: "key" },
      element("span", { class: "map" }, `this map ${area.toFixed(3)}`),
      element("span", { class: "chance" }, `random ${random_area.toFixed(3)}`),
    ),
  );
}

function verdict({ label, deletion, insertion, fill, steps, random_orders }) {
  const won = [deletion.area < deletion.random_area, insertion.area > insertion.random_area].filter(Boolean).length;
  const said = ["The map beats chance in neither test", "The map beats chance in one test of two", "The map beats chance in both tests"];
  return `${said[won]}: areas under the score of ${label}, ${steps} steps, ${random_orders} random orders, ${FILLS[fill]}.`;
}
