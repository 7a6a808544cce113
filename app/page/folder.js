// All images at once: in the order that is asked for, those of one label alone, each with its map, and as a table.

import { json } from "./api.js";
import { mapCanvas } from "./draw.js";
import { breakable, byId, element } from "./element.js";
import { patient } from "./latest.js";
import { STYLE, mapAddress, scaleOf } from "./maps.js";
import { METHODS } from "./methods.js";
import { percent } from "./numbers.js";
import { pixelsOf } from "./picture.js";

const WIDTH = 240; // pixels of a picture
const AT_ONCE = 2; // maps that are loaded

const best = ({ result }) => result.predictions?.[0];
const score = (image) => best(image)?.score ?? 0;
const lead = (image) => score(image) - (image.result.predictions?.[1]?.score ?? 0);
const familiarity = ({ result }) => result.familiarity ?? 1;
const ORDERS = {
  added: () => 0,
  score: (a, b) => score(b) - score(a),
  doubt: (a, b) => lead(a) - lead(b),
  familiarity: (a, b) => familiarity(a) - familiarity(b),
  name: (a, b) => a.name.localeCompare(b.name, "en", { numeric: true }),
  other: (a, b) => (b.apart ?? 0) - (a.apart ?? 0), // see versus.js
};

export class Folder {
  #state;
  #parts;
  #form = byId("sieve");
  #cells = new Map(); // by id
  #waiting = new Set(); // images whose maps are seen and not drawn
  #loading = 0;
  #style = ""; // of the maps
  #eye = new IntersectionObserver((entries) => this.#see(entries), { rootMargin: "200px" });

  /** `images` gives those that were added; `choose(id, more)` shows one. `least`: familiarity below it is said. */
  constructor(state, { images, classes, least, choose }) {
    this.#state = state;
    this.#parts = { images, classes, least, choose };
    this.#form.addEventListener("input", () => this.#show());
    this.#form.addEventListener("submit", (event) => event.preventDefault());
    byId("take-csv").addEventListener("click", () => this.#download());
    state.addEventListener("change", () => this.#show());
  }

  /** Those on show, in their order. */
  get #shown() {
    const { sort, only } = this.#form.elements;
    const wanted = (image) => only.value === "" || best(image)?.index === Number(only.value);
    return this.#parts.images().filter(wanted).sort(ORDERS[sort.value]);
  }

  /** Choose the image that is `step` after the chosen one. */
  step(step) {
    const shown = this.#shown;
    const next = shown[shown.findIndex(({ id }) => id === this.#state.values.id) + step];
    if (next) this.#parts.choose(next.id);
  }

  #show() {
    const images = this.#parts.images();
    document.body.classList.toggle("several", images.length > 1);
    byId("tab-all").textContent = `All ${images.length}`;
    if (this.#state.values.tab !== "all") return;
    this.#offer(images);
    const values = this.#state.values;
    const style = ["method", "layer", "head", ...STYLE].map((name) => values[name]).join() + this.#form.elements.maps.checked;
    if (style !== this.#style) {
      this.#eye.disconnect();
      for (const drawn of [this.#cells, this.#waiting]) drawn.clear();
    }
    this.#style = style;
    const shown = this.#shown;
    byId("grid").replaceChildren(...shown.map((image) => this.#cell(image)));
    byId("counted").textContent = shown.length < images.length ? `${shown.length} of ${images.length} images` : `${images.length} images`;
  }

  /** The labels of the images, the most frequent first. */
  #offer(images) {
    const { only } = this.#form.elements;
    const counts = new Map();
    for (const one of images.map(best).filter(Boolean)) counts.set(one.index, (counts.get(one.index) ?? 0) + 1);
    const labels = [...counts].sort((a, b) => b[1] - a[1]).map(([index, count]) => [index, `${this.#parts.classes.name(index)} (${count})`]);
    const before = only.value;
    only.replaceChildren(...[["", "all labels"], ...labels].map(([value, text]) => element("option", { value }, text)));
    only.value = before;
  }

  #cell(image) {
    const { id, name, source, said } = image;
    const { classes, least, choose } = this.#parts;
    let cell = this.#cells.get(id);
    if (cell?.dataset.said !== String(said)) {
      const answer = best(image);
      const lines = [
        answer && [element("b", {}, breakable(classes.name(answer.index))), ` ${percent(answer.score)}`],
        element("small", {}, name),
        familiarity(image) < least && element("small", { class: "strange" }, "unfamiliar"),
        said && element("small", { class: "other" }, said),
      ];
      const picture = element("img", { src: source, alt: "", loading: "lazy" });
      const button = element("button", { type: "button", onclick: () => choose(id, { tab: "answer" }) }, picture, ...lines.filter(Boolean));
      cell = element("li", { "data-id": id, "data-said": String(said) }, button);
      this.#cells.set(id, cell);
      if (this.#form.elements.maps.checked) this.#eye.observe(cell);
    }
    cell.firstChild.ariaCurrent = String(id === this.#state.values.id);
    return cell;
  }

  #see(entries) {
    for (const { target, isIntersecting } of entries) this.#waiting[isIntersecting ? "add" : "delete"](target.dataset.id);
    this.#next();
  }

  async #next() {
    const [id] = this.#waiting;
    if (!id || this.#loading >= AT_ONCE) return;
    this.#waiting.delete(id);
    const cell = this.#cells.get(id);
    this.#eye.unobserve(cell);
    this.#loading += 1;
    const values = { ...this.#state.values, id, label: "", against: "", prompt: "", threshold: "" };
    if (METHODS[values.method].passes) values.method = "evidence"; // it would take seconds for each
    try {
      const numbers = await patient(() => json(mapAddress(values, "json")));
      const { file } = this.#parts.images().find((image) => image.id === id);
      const canvas = mapCanvas({ ...numbers, scale: scaleOf(values, numbers) }, await pixelsOf(file, WIDTH), null, values);
      cell.querySelector("img").replaceWith(canvas);
    } catch {} // the image alone stays
    this.#loading -= 1;
    this.#next();
  }

  #download() {
    const quoted = (value) => (/[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
    const row = (image) => {
      const { index = "", score = "" } = best(image) ?? {};
      const label = index === "" ? "" : this.#parts.classes.name(index);
      return [quoted(image.name), quoted(label), index, score, image.result.familiarity ?? ""].join(",");
    };
    const table = ["image,label,index,score,familiarity", ...this.#shown.map(row), ""].join("\r\n");
    element("a", { href: URL.createObjectURL(new Blob([table], { type: "text/csv" })), download: "images.csv" }).click();
  }
}
