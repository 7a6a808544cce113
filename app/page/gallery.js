// What the model has learned, independent of any image: filters, positions, distances. Drawn from their numbers; a picture
// that is not known here is the service's own.

import { ROOT, imageSource, json } from "./api.js";
import { chart } from "./chart.js";
import { showColorbar } from "./colormaps.js";
import { drawPatches } from "./draw.js";
import { byId, canvasOf, element } from "./element.js";
import { range } from "./limits.js";
import { percent } from "./numbers.js";
import { showPart } from "./part.js";

const MOST_TICKS = 12;
const DRAWN = { filters, positions, distance };

/** Loaded when its tab is first shown. */
export function showGallery(state) {
  byId("to-model").addEventListener("click", () => {
    state.set({ tab: "model" });
    byId("model").scrollIntoView({ block: "nearest" });
  });
  showPart(state, "gallery-part", {
    names: [],
    load: async () => Promise.all((await json(`${ROOT}model/inspect`)).pictures.map(item)),
    show: (items) => byId("gallery").replaceChildren(...items),
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
    return element("li", {}, canvasOf(pixels), percent(shares[k]));
  };
  return element("ol", { class: "filters", "aria-label": "Each with its share of the variance of all filters" }, ...components.map(tile));
}

function positions({ grid, patches, similarity }) {
  const across = new Set(patches.map(([, column]) => column)).size;
  const node = element(
    "div",
    { class: "positions", role: "img", "aria-label": "Cosine of each position with all others", style: { "--across": across } },
    ...similarity.map((values) => canvasOf(drawPatches({ values: values.flat(), limits: [-1, 1], grid }, "viridis"))),
  );
  const ramp = element("p", { class: "ramp", role: "img" });
  showColorbar(ramp, { limits: [-1, 1], min: -1, max: 1, colormap: "viridis" });
  return element("div", {}, node, ramp);
}

function distance({ reference: { distance: layers, pictures }, unit }) {
  const x = (layer) => (layer + 0.5) / layers.length;
  const every = Math.ceil(layers.length / MOST_TICKS);
  const figure = chart({
    points: layers.flatMap((heads, layer) => heads.map((value) => [x(layer), value])),
    ticks: layers.map((_, layer) => [x(layer), layer % every ? "" : layer]),
    xLabel: "layer",
    description: `Mean attention distance of each head in ${unit}, of ${pictures} images`,
  });
  return element("div", {}, figure, element("p", { class: "hint" }, `Each circle is a head, its height the distance in ${unit}.`));
}
