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

const score = ({ result: { predictions: [best] = [] } }) => best?.score ?? 0;
const lead = ({ result: { predictions: [best, second] = [] } }) => (best?.score ?? 0) - (second?.score ?? 0);
const ORDERS = {
  added: () => 0,
  score: (a, b) => score(b) - score(a),
  doubt: (a, b) => lead(a) - lead(b),
  familiarity: (a, b) => (a.result.familiarity ?? 1) - (b.result.familiarity ?? 1),
  name: (a, b) => a.name.localeCompare(b.name, "en", { numeric: true }),
  other: (a, b) => (b.apart ?? 0) - (a.apart ?? 0),
};

export class Folder {
  #state;
  #images;
  #choose;
  #least;
  #classes;
  #form = byId("sieve");
  #cells = new Map(); // by id
  #waiting = new Set(); // ids of images whose maps are seen and not drawn
  #loading = 0;
  #style = ""; // of the maps
  #eye = new IntersectionObserver((entries) => this.#see(entries), { rootMargin: "200px" });

  /** `images` gives those that were added; `choose(id, more)` shows one. `least`: familiarity below it is said. */
  constructor(state, { images, classes, least, choose }) {
    this.#state = state;
    this.#images = images;
    this.#classes = classes;
    this.#least = least;
    this.#choose = choose;
    this.#form.addEventListener("input", () => this.show());
    this.#form.addEventListener("submit", (event) => event.preventDefault());
    byId("take-csv").addEventListener("click", () => this.#download());
    state.addEventListener("change", () => this.show());
  }

  /** Those on show, in their order. */
  get shown() {
    const { sort, only } = this.#form.elements;
    const wanted = ({ result: { predictions: [best] = [] } }) => only.value === "" || best?.index === Number(only.value);
    return this.#images().filter(wanted).sort(ORDERS[sort.value]);
  }

  /** Choose the image that is `step` after the chosen one. */
  step(step) {
    const { shown } = this;
    const at = shown.findIndex(({ id }) => id === this.#state.values.id) + step;
    if (shown[at]) this.#choose(shown[at].id);
  }

  show() {
    const images = this.#images();
    document.body.classList.toggle("several", images.length > 1);
    byId("tab-all").textContent = `All ${images.length}`;
    if (this.#state.values.tab !== "all") return;
    this.#offer(images);
    const { method, layer, head, ...values } = this.#state.values;
    const style = JSON.stringify([method, layer, head, ...STYLE.map((name) => values[name]), this.#form.elements.maps.checked]);
    if (style !== this.#style) this.#forget();
    this.#style = style;
    const { shown } = this;
    byId("grid").replaceChildren(...shown.map((image) => this.#cell(image)));
    byId("counted").textContent = shown.length < images.length ? `${shown.length} of ${images.length} images` : `${images.length} images`;
  }

  #offer(images) {
    const counts = new Map();
    for (const { result: { predictions: [best] = [] } } of images) if (best) counts.set(best.index, (counts.get(best.index) ?? 0) + 1);
    const { only } = this.#form.elements;
    const before = only.value;
    const sorted = [...counts].sort((a, b) => b[1] - a[1]).map(([index, count]) => [index, `${this.#classes.name(index)} (${count})`]);
    only.replaceChildren(...[["", "all labels"], ...sorted].map(([value, text]) => element("option", { value }, text)));
    only.value = before;
  }

  /** Draw all maps anew. */
  #forget() {
    this.#eye.disconnect();
    this.#cells.clear();
    this.#waiting.clear();
  }

  #cell(image) {
    const { id, name, source, result, said } = image;
    const { predictions: [best] = [], familiarity = 1 } = result;
    const known = this.#cells.get(id);
    if (known?.dataset.said === String(said)) {
      known.querySelector("button").ariaCurrent = String(id === this.#state.values.id);
      return known;
    }
    const cell = element(
      "li",
      { "data-id": id, "data-said": String(said) },
      element(
        "button",
        { type: "button", "aria-current": String(id === this.#state.values.id), onclick: () => this.#choose(id, { tab: "answer" }) },
        element("img", { src: source, alt: "", loading: "lazy" }),
        element("b", {}, best ? breakable(this.#classes.name(best.index)) : name),
        best ? ` ${percent(best.score)}` : null,
        best ? element("small", {}, name) : null,
        familiarity < this.#least ? element("small", { class: "strange" }, "unfamiliar") : null,
        said ? element("small", { class: "other" }, said) : null,
      ),
    );
    this.#cells.set(id, cell);
    if (this.#form.elements.maps.checked) this.#eye.observe(cell);
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
    const values = { ...this.#state.values, id, label: "", against: "", threshold: "" };
    if (METHODS[values.method].passes) values.method = "evidence"; // it would take seconds for each
    try {
      const numbers = await patient(() => json(mapAddress(values, "json")));
      const { file } = this.#images().find((image) => image.id === id);
      const canvas = mapCanvas({ ...numbers, scale: scaleOf(values, numbers) }, await pixelsOf(file, WIDTH), null, values);
      cell.querySelector("img").replaceWith(canvas);
    } catch {} // the image alone stays
    this.#loading -= 1;
    this.#next();
  }

  #download() {
    const text = (value) => (/[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
    const row = ({ name, result: { predictions: [best] = [], familiarity = "" } }) =>
      [text(name), text(best ? this.#classes.name(best.index) : ""), best?.index ?? "", best?.score ?? "", familiarity].join(",");
    const table = ["image,label,index,score,familiarity", ...this.shown.map(row)].join("\r\n");
    element("a", { href: URL.createObjectURL(new Blob([`${table}\r\n`], { type: "text/csv" })), download: "images.csv" }).click();
  }
}
