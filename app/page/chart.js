// A line chart as SVG. Both axes start at 0; the x axis ends at 1.

import { drawing } from "./element.js";

const WIDTH = 320;
const HEIGHT = 200;
const MARGIN = { left: 34, right: 10, top: 10, bottom: 34 };

const x = (value) => MARGIN.left + value * (WIDTH - MARGIN.left - MARGIN.right);

/** `lines`: [{name, xs, ys}] with xs from 0 to 1 and ys from 0; `description` is the text for screen readers. */
export function chart({ lines, xLabel, description }) {
  const top = Math.max(...lines.flatMap(({ ys }) => ys), 1e-9) > 0.5 ? 1 : nice(Math.max(...lines.flatMap(({ ys }) => ys)));
  const y = (value) => HEIGHT - MARGIN.bottom - (value / top) * (HEIGHT - MARGIN.top - MARGIN.bottom);
  const text = (at, anchor, what) => drawing("text", { x: at[0], y: at[1], "text-anchor": anchor }, what);
  const rules = [0, 0.5, 1].map((part) =>
    drawing("line", { class: "rule", x1: x(0), x2: x(1), y1: y(part * top), y2: y(part * top) }),
  );
  const numbers = [0, 0.5, 1].flatMap((part) => [
    text([MARGIN.left - 6, y(part * top) + 4], "end", Number((part * top).toPrecision(2))),
    text([x(part), HEIGHT - MARGIN.bottom + 16], part === 1 ? "end" : part === 0 ? "start" : "middle", `${100 * part} %`),
  ]);
  const paths = lines.map(({ name, xs, ys }) =>
    drawing("polyline", { class: name, points: xs.map((value, i) => `${x(value)},${y(ys[i])}`).join(" ") }),
  );
  return drawing(
    "svg",
    { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": description },
    rules,
    numbers,
    text([x(0.5), HEIGHT - 2], "middle", xLabel),
    paths,
  );
}

/** The smallest of 1, 2 and 5 times a power of ten that is at least `value`. */
function nice(value) {
  const power = 10 ** Math.floor(Math.log10(value || 1));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
}
