// Deletion and insertion curves: the map against random orders, measured on request.

import { chart } from "./chart.js";
import { byId, element, figure } from "./element.js";
import { verifyAddress } from "./maps.js";
import { percent } from "./numbers.js";
import { measurement } from "./part.js";

const KINDS = [
  ["deletion", "Deletion", "patches covered", "lower is better"],
  ["insertion", "Insertion", "patches uncovered", "higher is better"],
];
export function showVerification(state, classes) {
  const measuring = measurement(state, "verify-part", {
    show: (measured) => {
      byId("curves").replaceChildren(...KINDS.map((kind) => curves(measured, ...kind)));
      return summary(classes.named(measured, state.values));
    },
    clear: () => byId("curves").replaceChildren(),
  });
  byId("measure").addEventListener("click", () => measuring.run(() => verifyAddress(state.values), "Measuring …"));
}

function curves(measured, name, title, xLabel, better) {
  const { fractions, scores, random, area, random_area } = measured[name];
  const description = `${title}: the area is ${area.toFixed(3)}, in random order ${random_area.toFixed(3)}; ${better}.`;
  const lines = Object.entries({ random, map: scores }).map(([name, ys]) => ({ name, xs: fractions, ys }));
  const key = [element("span", { class: "map" }, `this map ${area.toFixed(3)}`), element("span", { class: "random" }, `random order ${random_area.toFixed(3)}`)];
  return figure(title, better, chart({ lines, xLabel, description }), element("p", { class: "key" }, ...key));
}

function summary({ label, deletion, insertion, fill, steps, random_orders, chance }) {
  const won = (deletion.area < Math.min(...deletion.random_areas)) + (insertion.area > Math.max(...insertion.random_areas));
  const said = byId("fill").querySelector(`[value=${fill}]`).text;
  const tests = ["neither test", "one of the two tests", "both tests"][won];
  return (
    `The map beats every random order in ${tests}, by the area under the score for “${label}”. ` +
    `A random map does so in both in ${percent(chance)}. ` +
    `The test used ${steps} steps and ${random_orders} random orders, and covered patches with ${said}.`
  );
}
