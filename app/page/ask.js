// Ask a patch: how similar every patch of the images on show is to it. Or all of them in three colours.

import { imageSource } from "./api.js";
import { showColorbar } from "./colorbar.js";
import { drawPatches } from "./draw.js";
import { byId, element } from "./element.js";
import { Latest } from "./latest.js";
import { range } from "./limits.js";
import { partAddress } from "./maps.js";
import { show } from "./picture.js";
import { isCompared } from "./tabs.js";
import { similarities, threeColours, tokenAt, tokensOf } from "./tokens.js";

const MOST = 6; // images on show
const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

export class Ask {
  #state;
  #images;
  #tiles = []; // of the images on show
  #asked; // [tile, row, column]
  #frame; // the next one, where one is due
  #loading = new Latest();
  #form = byId("ask-how");

  /** `images` gives those that were added, in their order: [{id, name}]. */
  constructor(state, images) {
    this.#state = state;
    this.#images = images;
    state.addEventListener("change", ({ detail }) => ["id", "tab", "added"].some((name) => detail.has(name)) && this.#refresh());
    this.#form.addEventListener("change", () => this.#draw());
  }

  /** Show the image and those that were added after it, as far as they are known now. */
  #refresh() {
    const { id, tab } = this.#state.values;
    if (!id || !isCompared({ tab })) return;
    const all = this.#images();
    const at = Math.max(all.findIndex((image) => image.id === id), 0);
    const chosen = all.length ? [...all.slice(at), ...all.slice(0, at)].slice(0, MOST) : [{ id, name: "this image" }];
    if (String(chosen.map((image) => image.id)) === String(this.#tiles.map((tile) => tile.id))) return;
    const tiles = chosen.map((image) => this.#tiles.find((tile) => tile.id === image.id) ?? new Tile(image, this));
    this.#tiles = tiles;
    byId("tiles").replaceChildren(...tiles.map(({ node }) => node));
    this.#loading.run({
      load: async () => {
        for (const tile of tiles) {
          await tile.load();
          if (tiles === this.#tiles) this.#draw();
        }
      },
      show() {},
      busy: (said) => (byId("ask-said").textContent = said),
      fail: (problem) => {
        this.#tiles = []; // another look tries again
        byId("ask-said").textContent = problem.message;
      },
    });
  }

  /** Ask a patch of a tile. */
  ask(tile, row, column) {
    const [rows, columns] = tile.tokens?.grid ?? [0, 0];
    if (row < 0 || column < 0 || row >= rows || column >= columns) return;
    this.#asked = [tile, row, column];
    this.#frame ??= requestAnimationFrame(() => this.#draw());
  }

  /** Ask the patch beside the one that is asked, or one of another tile. */
  move(tile, [down, right]) {
    const [asked, row, column] = this.#asked;
    if (asked === tile) this.ask(tile, row + down, column + right);
    else this.ask(tile, ...tile.middle);
  }

  #draw() {
    this.#frame = undefined;
    const tiles = this.#tiles.filter(({ tokens }) => tokens);
    if (!tiles.length) return;
    if (!tiles.includes(this.#asked?.[0])) this.#asked = [tiles[0], ...tiles[0].middle];
    const inColours = this.#form.elements.how.value === "colours";
    byId("ask-ramp").hidden = inColours;
    for (const tile of tiles) tile.mark(inColours ? undefined : this.#asked);
    byId("ask-said").textContent = inColours ? paint(tiles) : compare(tiles, this.#asked);
  }
}

/** Show the three colours of each patch. Returns what they mean. */
function paint(tiles) {
  const colours = threeColours(tiles.map(({ tokens }) => tokens));
  for (const [k, tile] of tiles.entries()) {
    const [rows, columns] = tile.tokens.grid;
    const pixels = new ImageData(columns, rows);
    for (let i = 0; i < rows * columns; i++) pixels.data.set([...colours[k].subarray(3 * i, 3 * i + 3).map((share) => 255 * share), 255], 4 * i);
    tile.show(pixels);
  }
  return "Patches of one colour are alike to the model, in all images: three principal components of their tokens.";
}

/** Show how similar each patch is to the one that is asked. Returns which of another image is most. */
function compare(tiles, [asked, row, column]) {
  const token = tokenAt(asked.tokens, row * asked.tokens.grid[1] + column);
  const found = tiles.map((tile) => similarities(tile.tokens, token));
  const ends = found.map(range);
  const limits = [Math.min(...ends.map(([low]) => low)), 1];
  for (const [k, tile] of tiles.entries()) {
    const pixels = drawPatches({ values: found[k], limits, grid: tile.tokens.grid }, "viridis");
    const opacity = (value) => 40 + (200 * (value - limits[0])) / (1 - limits[0] || 1);
    for (const [i, value] of found[k].entries()) pixels.data[4 * i + 3] = opacity(value);
    tile.show(pixels);
  }
  showColorbar(byId("ask-ramp"), { limits, min: limits[0], max: 1, colormap: "viridis" });
  const said = `Row ${row}, column ${column} of ${asked.name}.`;
  const [best] = [...tiles.keys()].filter((k) => tiles[k] !== asked).sort((a, b) => ends[b][1] - ends[a][1]);
  if (best === undefined) return said;
  const [at, [, columns], most] = [found[best].indexOf(ends[best][1]), tiles[best].tokens.grid, ends[best][1].toFixed(2)];
  return `${said} Most like it elsewhere: row ${Math.floor(at / columns)}, column ${at % columns} of ${tiles[best].name}, cosine ${most}.`;
}

/** One image: what the network saw of it, and a colour for each patch. */
class Tile {
  #map = element("canvas");
  #mark = element("i");
  #image = element("img", { alt: "" });

  constructor({ id, name }, asking) {
    Object.assign(this, { id, name });
    const button = element("button", { type: "button", "aria-label": `Patches of ${name}. The arrow keys ask another one.` }, this.#image, this.#map, this.#mark);
    const point = ({ clientX, clientY }) => {
      const { left, top, width, height } = button.getBoundingClientRect();
      const [rows, columns] = this.tokens?.grid ?? [0, 0];
      asking.ask(this, Math.floor((rows * (clientY - top)) / height), Math.floor((columns * (clientX - left)) / width));
    };
    for (const event of ["pointermove", "pointerdown"]) button.addEventListener(event, point);
    button.addEventListener("keydown", (event) => {
      if (!(event.key in STEPS) || !this.tokens) return;
      asking.move(this, STEPS[event.key]);
      event.preventDefault(); // otherwise the page scrolls
      event.stopPropagation(); // otherwise arrows change the layer
    });
    this.node = element("li", {}, button, element("span", {}, name));
  }

  async load() {
    const source = imageSource(partAddress(this.id, "image?part=seen"));
    [this.#image.src, this.tokens] = await Promise.all([source, tokensOf(this.id)]);
    this.node.style.setProperty("--ratio", this.tokens.grid[1] / this.tokens.grid[0]);
  }

  get middle() {
    return this.tokens.grid.map((count) => count >> 1);
  }

  show(pixels) {
    show(this.#map, pixels);
  }

  /** Frame the patch that is asked, if it is of this image. */
  mark([tile, row, column] = []) {
    this.#mark.hidden = tile !== this;
    if (tile !== this) return;
    const [rows, columns] = this.tokens.grid;
    const place = { left: column / columns, top: row / rows, width: 1 / columns, height: 1 / rows };
    for (const [side, share] of Object.entries(place)) this.#mark.style[side] = `${100 * share}%`;
  }
}
