// Ask a patch: how similar every patch of the images on show is to it. Or all of them in three colours.

import { imageSource } from "./api.js";
import { showColorbar } from "./colorbar.js";
import { drawPatches } from "./draw.js";
import { byId, element } from "./element.js";
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
  #form = byId("ask-how");

  /** `images` gives those that were added, in their order: [{id, name}]. */
  constructor(state, images) {
    this.#state = state;
    this.#images = images;
    state.addEventListener("change", ({ detail }) => ["id", "tab", "added"].some((name) => detail.has(name)) && this.refresh());
    this.#form.addEventListener("change", () => this.#draw());
  }

  /** Show the image and those that were added after it, as far as they are known now. */
  async refresh() {
    const { id, tab } = this.#state.values;
    if (!id || !isCompared({ tab })) return;
    const all = this.#images();
    const at = Math.max(all.findIndex((image) => image.id === id), 0);
    const chosen = all.length ? [...all.slice(at), ...all.slice(0, at)].slice(0, MOST) : [{ id, name: "this image" }];
    if (String(chosen.map((image) => image.id)) === String(this.#tiles.map((tile) => tile.id))) return;
    const tiles = (this.#tiles = chosen.map((image) => this.#tiles.find((tile) => tile.id === image.id) ?? new Tile(image, this)));
    byId("tiles").replaceChildren(...tiles.map(({ node }) => node));
    byId("ask-said").textContent = "Loading the tokens …";
    try {
      await Promise.all(tiles.map((tile) => tile.load()));
    } catch (problem) {
      if (tiles !== this.#tiles) return;
      byId("tiles").replaceChildren();
      this.#tiles = []; // another look tries again
      byId("ask-said").textContent = problem.message;
      return;
    }
    if (tiles !== this.#tiles) return;
    const [rows, columns] = tiles[0].tokens.grid;
    if (!tiles.includes(this.#asked?.[0])) this.#asked = [tiles[0], rows >> 1, columns >> 1];
    this.#draw();
  }

  /** Ask a patch of a tile. */
  ask(tile, row, column) {
    const [rows, columns] = tile.tokens?.grid ?? [0, 0];
    if (row < 0 || column < 0 || row >= rows || column >= columns) return;
    this.#asked = [tile, row, column];
    this.#frame ??= requestAnimationFrame(() => this.#draw());
  }

  move(tile, key) {
    const [asked, row, column] = this.#asked;
    const [rows, columns] = tile.tokens.grid;
    const [down, right] = STEPS[key];
    if (asked === tile) this.ask(tile, row + down, column + right);
    else this.ask(tile, rows >> 1, columns >> 1);
  }

  #draw() {
    this.#frame = undefined;
    if (!this.#asked || this.#tiles.some(({ tokens }) => !tokens)) return;
    const inColours = this.#form.elements.how.value === "colours";
    byId("ask-ramp").hidden = inColours;
    for (const tile of this.#tiles) tile.mark(inColours ? undefined : this.#asked);
    if (inColours) this.#paint();
    else this.#compare();
  }

  #paint() {
    const all = threeColours(this.#tiles.map(({ tokens }) => tokens));
    for (const [k, tile] of this.#tiles.entries()) {
      const { grid: [rows, columns], count } = tile.tokens;
      const pixels = new ImageData(columns, rows);
      for (let i = 0; i < count; i++) pixels.data.set([0, 1, 2].map((band) => 255 * all[k][3 * i + band]).concat(255), 4 * i);
      tile.show(pixels);
    }
    byId("ask-said").textContent = "Patches of one colour are alike to the model, in all images: three principal components of their tokens.";
  }

  #compare() {
    const [asked, row, column] = this.#asked;
    const token = tokenAt(asked.tokens, row * asked.tokens.grid[1] + column);
    const found = this.#tiles.map((tile) => similarities(tile.tokens, token));
    const [lows, highs] = [found.map((one) => range(one)[0]), found.map((one) => range(one)[1])];
    const limits = [Math.min(...lows), 1];
    for (const [k, tile] of this.#tiles.entries()) {
      const pixels = drawPatches({ values: found[k], limits, grid: tile.tokens.grid }, "viridis");
      for (const [i, value] of found[k].entries()) pixels.data[4 * i + 3] = 40 + (200 * (value - limits[0])) / (1 - limits[0] || 1);
      tile.show(pixels);
    }
    showColorbar(byId("ask-ramp"), { limits, min: limits[0], max: 1, colormap: "viridis" });
    const others = [...this.#tiles.keys()].filter((k) => this.#tiles[k] !== asked);
    const best = others.sort((a, b) => highs[b] - highs[a])[0];
    let said = `Row ${row}, column ${column} of ${asked.name}.`;
    if (best !== undefined) {
      const [at, columns] = [found[best].indexOf(highs[best]), this.#tiles[best].tokens.grid[1]];
      said += ` Most like it elsewhere: row ${Math.floor(at / columns)}, column ${at % columns} of ${this.#tiles[best].name}, cosine ${highs[best].toFixed(2)}.`;
    }
    byId("ask-said").textContent = said;
  }
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
      asking.move(this, event.key);
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
