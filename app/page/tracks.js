// Rows of a table with bars, all of them on one scale.

import { element } from "./element.js";

/** Of those rows; `caption` is an element. */
export const trackTable = (look, rows, caption) => element("table", { class: look }, caption, element("tbody", {}, ...rows));

/** Makes the rows and their marks. The scale holds 0 and all `ends` of bars and lines. */
export function tracks(ends) {
  const low = Math.min(0, ...ends);
  const span = Math.max(0, ...ends) - low || 1;
  const share = (length) => `${(100 * length) / span}%`;

  const line = (className, at, style) => element("i", { class: className, style: { left: share(at - low), ...style } });

  const bar = (from, to) => line(to < from ? "minus" : "plus", Math.min(from, to), { width: share(Math.abs(to - from)) });

  const row = (name, title, number, ...marks) =>
    element(
      "tr",
      { class: name },
      element("th", { scope: "row" }, title),
      element("td", { class: "track" }, element("div", {}, line("zero", 0), ...marks)),
      element("td", { class: "number" }, number),
    );

  return { line, bar, row };
}
