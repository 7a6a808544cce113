// Deletion and insertion curves: the map against random orders, measured on request.

import { chart, nice } from "./chart.js";
import { byId, element } from "./element.js";
import { verifyAddress } from "./maps.js";
import { percent } from "./numbers.js";
import { Measurement } from "./part.js";

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

export function showVerification(state, classes) {
  const button = byId("measure");
  const measurement = new Measurement(state, "verify-part", {
    show: (measured) => {
      button.disabled = false;
      byId("curves").replaceChildren(...KINDS.map((kind) => figure(measured, ...kind)));
      return summary(classes.named(measured, state.values));
    },
    clear: () => {
      button.disabled = false;
      byId("curves").replaceChildren();
    },
  });
  button.addEventListener("click", () => {
    button.disabled = true;
    measurement.run(() => verifyAddress(state.values), "Measuring …");
  });
}

function figure(measured, name, title, xLabel, better) {
  const { fractions, scores, random, area, random_area } = measured[name];
  const description = `${title}: the area is ${area.toFixed(3)}, in random order ${random_area.toFixed(3)}; ${better}.`;
  const lines = [
    { name: "random", xs: fractions, ys: random },
    { name: "map", xs: fractions, ys: scores },
  ];
  const highest = Math.max(...random, ...scores);
  return element(
    "figure",
    {},
    element("figcaption", {}, element("b", {}, title), ` ${better}`),
    chart({ lines, top: highest > 0.5 ? 1 : nice(Math.max(highest, 1e-9)), xLabel, description }),
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
