// How the answer forms, layer by layer, and what each head does: the numbers of one image, as tables with coloured cells.

import { json } from "./api.js";
import { breakable, byId, element, figure } from "./element.js";
import { reportAddress } from "./maps.js";
import { fixed, percent } from "./numbers.js";
import { showPart } from "./part.js";

const GRIDS = [
  ["entropy", () => "Entropy", "in bits; low: attends to few tokens"],
  ["distance", () => "Mean distance", "in patches; low: attends nearby"],
  ["contribution", (label) => `Adds to the logit for “${label}”`, "directly; negative values lower it"],
];
const NUMBERED = 6; // with more heads in a row, the cells are too narrow for numbers

export function showReport(state, classes) {
  showPart(state, "lens-part heads-part", {
    names: ["id", "label"],
    load: (values, signal) => json(reportAddress(values), { signal }),
    show: (report, values) => {
      const { lens, heads, label, predictions } = classes.named(report, values);
      byId("lens-part").hidden = lens === null;
      const names = predictions.map(({ index }) => classes.name(index)); // in the order of the lens
      if (lens) byId("lens").replaceChildren(lensTable(names, lens.scores));
      const known = GRIDS.filter(([name]) => heads[name] !== null); // without classes no head adds to a logit
      byId("heads").replaceChildren(...known.map(([name, title, unit]) => grid(heads[name], title(label), unit)));
      state.say("heads"); // that are to be marked
    },
  });
}

function lensTable(names, scores) {
  const layers = scores.map((_, layer) => element("th", { scope: "col" }, layer));
  const rows = names.map((name, k) =>
    element("tr", {}, element("th", { scope: "row" }, breakable(name)), ...scores.map((row) => shaded(row[k], points(row[k])))),
  );
  return element(
    "table",
    { class: "lens" },
    element("thead", {}, element("tr", {}, element("th", {}, "layer"), ...layers)),
    element("tbody", {}, ...rows),
  );
}

function grid(numbers, title, unit) {
  const largest = Math.max(...numbers.flat().map(Math.abs)) || 1;
  const lowest = Math.min(...numbers.flat());
  const signed = lowest < 0;
  const low = signed ? 0 : lowest; // signed numbers are shaded by their absolute value
  const cell = (value, layer, head) =>
    shaded((Math.abs(value) - low) / (largest - low || 1), fixed(value, 2), {
      class: value < 0 ? "minus" : null,
      title: `Layer ${layer}, head ${head}: ${fixed(value, 4)}`,
      "data-layer": layer,
      "data-head": head,
    });
  const rows = numbers.map((row, layer) => element("tr", {}, ...row.map((value, head) => cell(value, layer, head))));
  const look = `${signed ? "signed" : ""} ${numbers[0].length > NUMBERED ? "dense" : ""}`;
  return figure(title, unit, element("table", { class: look }, element("tbody", {}, ...rows)));
}

/** A cell whose colour has the strength `share`, 0 to 1. */
const shaded = (share, text, attributes = {}) => element("td", { style: { "--share": share }, ...attributes }, text);

const points = (score) => percent(score).replace(" %", "");
