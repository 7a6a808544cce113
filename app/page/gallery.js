// What the model has learned, independent of any image: filters, positions, distances. Drawn from their numbers; a picture
// that is not known here is the service's own.

import { ROOT, imageSource, json } from "./api.js";
import { showColorbar } from "./colorbar.js";
import { drawPatches } from "./draw.js";
import { byId, drawing, element } from "./element.js";
import { Latest } from "./latest.js";
import { range } from "./limits.js";
import { percent } from "./numbers.js";
import { show } from "./picture.js";

const DRAWN = { filters, positions, distance };
const [WIDTH, HEIGHT, MARGIN] = [640, 300, 44];

/** Loaded when its tab is first shown. */
export function showGallery(state) {
  const loading = new Latest();
  let shown = false;
  byId("to-model").addEventListener("click", () => {
    state.set({ tab: "model" });
    byId("model").scrollIntoView({ block: "nearest" });
  });
  state.addEventListener("change", () => {
    if (shown || state.values.tab !== "model") return;
    shown = true;
    loading.run({
      load: async () => Promise.all((await json(`${ROOT}model/inspect`)).pictures.map(item)),
      show: (items) => byId("gallery").replaceChildren(...items),
      fail: (problem) => {
        shown = false;
        byId("gallery-status").textContent = problem.message;
      },
    });
  });
}

async function item({ name, title, png, json: numbers }) {
  const drawn = Object.hasOwn(DRAWN, name) ? DRAWN[name](await json(numbers)) : element("img", { src: await imageSource(png), alt: title });
  const links = [["Picture", png], ["Numbers", numbers]].map(([text, href]) => element("a", { href, "aria-label": `${text}: ${title}` }, text));
  return element("li", {}, element("h3", {}, title), drawn, element("p", {}, ...links));
}

function filters({ components, explained_variance_ratio: shares }) {
  const tile = (bands, k) => {
    const flat = bands.map((rows) => rows.flat());
    const [low, high] = range(flat.flat());
    const pixels = new ImageData(bands[0][0].length, bands[0].length);
    const grey = (value) => 127.5 * (1 + value / Math.max(high, -low));
    for (const i of flat[0].keys()) pixels.data.set([...flat.map((band) => grey(band[i])), 255], 4 * i);
    return element("li", {}, small(pixels), percent(shares[k]));
  };
  return element("ol", { class: "filters", "aria-label": "Each with its share of the variance of all filters" }, ...components.map(tile));
}

function positions({ grid, patches, similarity }) {
  const across = new Set(patches.map(([, column]) => column)).size;
  const node = element("div", { class: "positions", role: "img", "aria-label": "Cosine of each position with all others" });
  node.style.gridTemplateColumns = `repeat(${across}, minmax(0, 1fr))`;
  node.append(...similarity.map((values) => small(drawPatches({ values: values.flat(), limits: [-1, 1], grid }, "viridis"))));
  const ramp = element("p", { class: "ramp", role: "img" });
  showColorbar(ramp, { limits: [-1, 1], min: -1, max: 1, colormap: "viridis" });
  return element("div", {}, node, ramp);
}

function small(pixels) {
  const canvas = element("canvas");
  show(canvas, pixels);
  return canvas;
}

function distance({ reference: { distance: layers, pictures }, unit }) {
  const top = Math.ceil(Math.max(...layers.flat()));
  const x = (layer) => MARGIN + ((layer + 0.5) / layers.length) * (WIDTH - MARGIN);
  const y = (value) => 10 + (1 - value / top) * (HEIGHT - MARGIN - 10);
  const text = (at, anchor, what) => drawing("text", { x: at[0], y: at[1], "text-anchor": anchor }, what);
  const ticks = [0, top / 2, top];
  return drawing(
    "svg",
    { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `Mean attention distance of each head in ${unit}, of ${pictures} images` },
    ticks.map((value) => drawing("line", { class: "rule", x1: MARGIN, x2: WIDTH, y1: y(value), y2: y(value) })),
    ticks.map((value) => text([MARGIN - 8, y(value) + 4], "end", value)),
    layers.flatMap((heads, layer) => heads.map((value) => drawing("circle", { cx: x(layer), cy: y(value), r: 4 }))),
    layers.map((_, layer) => text([x(layer), HEIGHT - MARGIN + 18], "middle", layer)),
    text([(WIDTH + MARGIN) / 2, HEIGHT - 6], "middle", `layer; each circle is a head, its height the distance in ${unit}`),
  );
}
