// Ask a patch: how similar every patch of the images on show is to it. Or all of them in three colours.

import { imageSource, images } from "./api.js";
import { showColorbar } from "./colormaps.js";
import { drawPatches } from "./draw.js";
import { byId, element, show } from "./element.js";
import { range } from "./limits.js";
import { partAddress } from "./maps.js";
import { fixed } from "./numbers.js";
import { showPart } from "./part.js";
import { frame, isArrow, patchAt, patchBeside } from "./patches.js";
import { similarities, threeColours, tokenAt, tokensOf } from "./tokens.js";

const MOST = 6; // images on show

export function showAsk(state) {
  const form = byId("ask-how");
  let tiles = []; // of the images on show
  let asked = {}; // its `tile`, and the `patch` of it: [row, column]
  let due; // the next frame, where one is

  /** Of the image and those that were added after it. */
  function tilesFor(id) {
    const all = images();
    const at = Math.max(all.findIndex((image) => image.id === id), 0);
    const chosen = all.length ? [...all.slice(at), ...all.slice(0, at)].slice(0, MOST) : [{ id, name: "this image" }];
    return chosen.map((image) => tiles.find((tile) => tile.id === image.id) ?? tileOf(image, ask));
  }

  /** `choose(patch)` gives another patch of a tile, from the one that is asked if it is of this tile. */
  function ask(tile, choose) {
    const patch = choose(tile === asked.tile ? asked.patch : undefined);
    if (!patch) return;
    asked = { tile, patch };
    due ??= requestAnimationFrame(() => (byId("ask-said").textContent = draw()));
  }

  /** Returns what the colours mean. */
  function draw() {
    due = undefined;
    const loaded = tiles.filter(({ tokens }) => tokens);
    if (!loaded.length) return "";
    const inColours = form.elements.how.value === "colours";
    if (!loaded.includes(asked.tile)) asked = { tile: loaded[0], patch: middleOf(loaded[0]) };
    byId("ask-ramp").hidden = inColours;
    for (const tile of loaded) tile.mark.hidden = inColours || tile !== asked.tile;
    frame(asked.tile.mark, asked.tile.tokens.grid, asked.patch);
    return inColours ? paint(loaded) : compare(loaded, asked);
  }

  form.addEventListener("change", () => ask(asked.tile, (patch) => patch));
  showPart(state, "ask-part", {
    names: ["id", "added"],
    load: async ({ id }, signal) => {
      tiles = tilesFor(id);
      byId("tiles").replaceChildren(...tiles.map(({ node }) => node));
      for (const tile of tiles) {
        await load(tile);
        if (!signal.aborted) byId("ask-said").textContent = draw(); // before those that are still to come
      }
    },
    show: draw,
  });
}

/** Show the three colours of each patch. Returns what they mean. */
function paint(tiles) {
  const colours = threeColours(tiles.map(({ tokens }) => tokens));
  for (const [k, tile] of tiles.entries()) {
    const [rows, columns] = tile.tokens.grid;
    const pixels = new ImageData(columns, rows);
    for (let i = 0; i < rows * columns; i++) pixels.data.set([...colours[k].subarray(3 * i, 3 * i + 3).map((share) => 255 * share), 255], 4 * i);
    show(tile.map, pixels);
  }
  return "Patches of one colour are alike to the model, in all images: three principal components of their tokens.";
}

/** Show how similar each patch is to the one that is asked. Returns which of another image is most. */
function compare(tiles, { tile: asked, patch: [row, column] }) {
  const token = tokenAt(asked.tokens, row * asked.tokens.grid[1] + column);
  const found = tiles.map((tile) => similarities(tile.tokens, token));
  const ends = found.map(range);
  const limits = [Math.min(...ends.map(([low]) => low)), 1];
  for (const [k, tile] of tiles.entries()) {
    const pixels = drawPatches({ values: found[k], limits, grid: tile.tokens.grid }, "viridis");
    const opacity = (value) => 40 + (200 * (value - limits[0])) / (1 - limits[0] || 1);
    for (const [i, value] of found[k].entries()) pixels.data[4 * i + 3] = opacity(value);
    show(tile.map, pixels);
  }
  showColorbar(byId("ask-ramp"), { limits, min: limits[0], max: 1, colormap: "viridis" });
  const said = `Row ${row}, column ${column} of ${asked.name}.`;
  const [best] = [...tiles.keys()].filter((k) => tiles[k] !== asked).sort((a, b) => ends[b][1] - ends[a][1]);
  if (best === undefined) return said;
  const [at, [, columns], most] = [found[best].indexOf(ends[best][1]), tiles[best].tokens.grid, fixed(ends[best][1], 2)];
  return `${said} Most like it elsewhere: row ${Math.floor(at / columns)}, column ${at % columns} of ${tiles[best].name}, cosine ${most}.`;
}

/** One image: what the network saw of it, and a colour for each patch. */
function tileOf({ id, name }, ask) {
  const [image, map, mark] = [element("img", { alt: "" }), element("canvas"), element("i", { hidden: true })];
  const button = element("button", { type: "button", "aria-label": `Patches of ${name}. The arrow keys ask another one.` }, image, map, mark);
  const tile = { id, name, image, map, mark, node: element("li", {}, button, element("span", {}, name)) };
  for (const event of ["pointermove", "pointerdown"])
    button.addEventListener(event, (at) => tile.tokens && ask(tile, () => patchAt(button, tile.tokens.grid, at)));
  button.addEventListener("keydown", (event) => {
    if (!isArrow(event) || !tile.tokens) return;
    ask(tile, (patch) => (patch ? patchBeside(tile.tokens.grid, patch, event) : middleOf(tile)));
    event.preventDefault(); // otherwise the page scrolls
    event.stopPropagation(); // otherwise arrows change the layer
  });
  return tile;
}

async function load(tile) {
  if (tile.tokens) return;
  const source = imageSource(partAddress(tile.id, "image?part=seen"));
  [tile.image.src, tile.tokens] = await Promise.all([source, tokensOf(tile.id)]);
  tile.node.style.setProperty("--ratio", tile.tokens.grid[1] / tile.tokens.grid[0]);
}

const middleOf = ({ tokens: { grid } }) => grid.map((count) => count >> 1);
