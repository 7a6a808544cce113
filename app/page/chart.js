// A chart as SVG. Both axes start at 0; the x axis ends at 1.

import { drawing } from "./element.js";

const [WIDTH, HEIGHT] = [320, 200];
const MARGIN = { left: 34, right: 10, top: 10, bottom: 34 };
const SHARES = [0, 0.5, 1].map((part) => [part, `${100 * part} %`]);

/** `lines`: [{name, xs, ys}], `points`: [[x, y]], with x from 0 to 1 and y from 0; `ticks` of the x axis: [[x, text]];
 * `description` is the text for screen readers.
 */
export function chart({ lines = [], points = [], ticks = SHARES, xLabel, description }) {
  const top = nice(Math.max(...lines.flatMap(({ ys }) => ys), ...points.map(([, up]) => up)));
  const x = (value) => MARGIN.left + value * (WIDTH - MARGIN.left - MARGIN.right);
  const y = (value) => HEIGHT - MARGIN.bottom - (value / top) * (HEIGHT - MARGIN.top - MARGIN.bottom);
  const text = (at, anchor, what) => drawing("text", { x: at[0], y: at[1], "text-anchor": anchor }, what);
  const rules = [0, 0.5, 1].map((part) => part * top);
  return drawing(
    "svg",
    { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": description },
    rules.map((value) => drawing("line", { class: "rule", x1: x(0), x2: x(1), y1: y(value), y2: y(value) })),
    rules.map((value) => text([MARGIN.left - 6, y(value) + 4], "end", Number(value.toPrecision(2)))),
    ticks.map(([value, said]) => text([x(value), HEIGHT - MARGIN.bottom + 16], value === 1 ? "end" : value === 0 ? "start" : "middle", said)),
    text([x(0.5), HEIGHT - 2], "middle", xLabel),
    points.map(([across, up]) => drawing("circle", { cx: x(across), cy: y(up), r: 4 })),
    lines.map(({ name, xs, ys }) => drawing("polyline", { class: name, points: xs.map((value, i) => `${x(value)},${y(ys[i])}`).join(" ") })),
  );
}

/** The smallest of some multiples of a power of ten that is at least `value`. Half of it is as short a number. */
function nice(value) {
  const power = 10 ** Math.floor(Math.log10(value || 1));
  return [1, 2, 4, 6, 8, 10].map((step) => step * power).find((step) => step >= value);
}
