// The map on its image, drawn from its numbers, and the numbers under the pointer.

import { idNow, imageOf, json } from "./api.js";
import { showCaption } from "./caption.js";
import { drawMap } from "./draw.js";
import { byId, show } from "./element.js";
import { DEBOUNCE_MS, Latest } from "./latest.js";
import { NUMBERS, STYLE, isOnWall, mapAddress, scaled } from "./maps.js";
import { METHODS, isSigned } from "./methods.js";
import { percent, significant } from "./numbers.js";
import { frame, patchAt } from "./patches.js";
import { pictureOf, pixelsOf } from "./picture.js";
import { around, bounded, place, ratioOf, wholeOf } from "./view.js";

const POINT = `${matchMedia("(hover: none)").matches ? "Tap" : "Point at"} a patch to read its number.`;
const GONE =
  "The server no longer has the maps of this image. It keeps an image for a limited time, 15 minutes unless it is set " +
  "otherwise. Add the file again to see them.";

/** Dispatches `show` with the map as JSON has it and its pixels when another one is shown, and `fail` when none is. */
export class Heatmap extends EventTarget {
  #state;
  #classes;
  #stock;
  #image = {}; // that is shown: its `id`, its `picture` and where the network looked
  #numbers;
  #drawing = new Latest();
  #previewed;
  #stage = byId("stage");
  #pane = byId("map-pane");
  #map = byId("map");
  #seen = byId("seen");
  #original = byId("original");
  #wipe = byId("wipe");
  #patch = byId("patch");

  /** `stock`: where all maps of an image are loaded to, once its first map is shown. */
  constructor(state, classes, stock) {
    super();
    this.#state = state;
    this.#classes = classes;
    this.#stock = stock;
    state.follow((values, changed) => {
      const now = changed.has("id") || changed.has("end");
      if (now) this.#reserve(imageOf(values.id)?.result.image);
      this.#draw({ fresh: now || NUMBERS.some((name) => changed.has(name)), waitMs: now ? 0 : DEBOUNCE_MS });
    }, [...NUMBERS, ...STYLE, "end"]);
    state.follow(() => this.#showOriginal());
    byId("retry").addEventListener("click", () => this.#draw({ fresh: true }));
    this.#wipe.addEventListener("input", () => state.set({ wipe: this.#wipe.value }));
    for (const event of ["pointermove", "pointerdown"]) this.#pane.addEventListener(event, (at) => this.#point(at));
    this.#pane.addEventListener("pointerleave", ({ pointerType }) => pointerType === "mouse" && this.#leave()); // a touch leaves as soon as it ends
  }

  /** Give the stage the shape of an image before its map is loaded, so that nothing moves when it appears. */
  #reserve({ width, height } = {}) {
    if (width) byId("answer").style.setProperty("--ratio", bounded(width / height));
  }

  /** Let the panes show a part of an image. */
  #crop(image, part) {
    this.#stage.style.setProperty("--shown", ratioOf(part));
    for (const node of [this.#map, this.#original]) place(node, wholeOf(image), part);
  }

  /** Show a file that is on its way to the model. */
  async preview(file) {
    this.#previewed = file;
    this.#stage.ariaBusy = "true";
    const pixels = await pixelsOf(file).catch(() => undefined);
    if (!pixels || this.#previewed !== file) return;
    const { width, height } = pixels;
    this.#drawing.cancel();
    this.#reserve(pixels);
    this.#crop([width, height], wholeOf([width, height]));
    this.#say("");
    show(this.#map, pixels);
  }

  #draw({ fresh, waitMs = 0 }) {
    const values = this.#state.values;
    if (values.id) this.#previewed = undefined;
    const ready = values.id && this.#image.id === values.id && (fresh ? this.#inStock(values) : this.#numbers);
    this.#drawing.cancel(); // it is of other controls, or of an image that was left
    if (ready) this.#show(ready, values);
    else if (values.id) this.#load(values, waitMs, METHODS[values.method].passes ?? [undefined]);
  }

  #inStock(values) {
    const numbers = this.#stock.map(values);
    const { image, crop_box } = this.#image;
    return numbers && { ...numbers, image, crop_box };
  }

  /** `passes`: of a map that takes any, for each of its pictures; the server goes on from those of the one before. */
  #load(values, waitMs, [passes, ...more]) {
    this.#stage.ariaBusy = "true";
    this.#numbers = undefined; // the old numbers belong to other controls
    this.#link(values);
    this.#drawing.run({
      waitMs,
      load: (signal) => Promise.all([json(mapAddress(values, "json", undefined, passes), { signal }), pictureOf(values.id)]),
      show: ([numbers, picture]) => {
        const { image, crop_box } = numbers;
        this.#image = { id: values.id, picture, image, crop_box };
        this.#show(numbers, values);
        if (more.length) this.#load(values, 0, more);
        else this.#stock.load(values.id).catch(() => {}); // for the next map
      },
      busy: (said) => this.#say(said),
      fail: (problem) => this.#fail(problem),
    });
  }

  /** Where the map is downloaded: the PNG as it is shown, with a colour bar. */
  #link(shown, numbers) {
    const values = { ...shown, id: idNow(shown.id) };
    for (const format of ["png", "json", "npy"]) {
      const link = byId(`take-${format}`);
      link.href = mapAddress(values, format, numbers) + (format === "png" ? "&colorbar=true" : "");
      link.download = `${values.method}-${values.id.slice(0, 6)}.${format}`;
    }
  }

  #show(found, values) {
    this.#numbers = found;
    this.#link(values, found);
    const numbers = scaled(found, values);
    const pixels = drawMap(numbers, this.#image.picture, values);
    show(this.#map, pixels);
    this.#reserve(pixels);
    this.#showOriginal();
    const part = around(numbers);
    this.#crop(numbers.image, part);
    place(this.#seen, numbers.crop_box, part);
    const said = showCaption(this.#classes.named(numbers, values), values);
    this.#map.ariaLabel = `Map on the image. ${said}`;
    for (const node of document.querySelectorAll(".said")) node.textContent = said;
    for (const near of document.querySelectorAll(".near")) {
      near.hidden = !isOnWall(values);
      show(near.firstElementChild, pixels);
      uncover(near);
    }
    this.#say("");
    document.body.classList.remove("gone");
    this.#stage.ariaBusy = "false";
    this.#leave();
    this.dispatchEvent(new CustomEvent("show", { detail: { numbers, pixels } }));
  }

  #fail(problem) {
    this.#stage.ariaBusy = "false";
    const gone = problem.status === 404;
    this.#say(gone ? GONE : problem.message);
    byId("retry").hidden = !problem.temporary;
    document.body.classList.toggle("gone", gone);
    this.#state.replace({ tab: "answer" }); // where the reason stands
    this.dispatchEvent(new Event("fail"));
  }

  /** A sentence in place of the map, or the map. */
  #say(sentence) {
    byId("about-map").hidden = this.#pane.hidden = sentence !== "";
    byId("trouble").textContent = sentence;
    byId("trouble-box").hidden = sentence === "";
    byId("retry").hidden = true;
  }

  /** Beside the map, or over the left of it up to the handle; darkened outside the part that the network sees. */
  #showOriginal() {
    const { id, beside, wipe, ...style } = this.#state.values;
    const [apart, shown] = [beside === "true", beside === "true" || Number(wipe) > 0];
    byId("original-pane").hidden = !shown;
    this.#stage.classList.toggle("beside", apart);
    this.#stage.style.setProperty("--wipe", wipe);
    this.#wipe.value = wipe;
    this.#wipe.ariaValueText = `${Math.round(100 * wipe)} % original`;
    if (!shown || !this.#numbers || this.#image.drawn) return;
    const plain = { ...style, overlay: "true", fade: "true", alpha: 0, threshold: "" };
    show(this.#original, drawMap(this.#numbers, this.#image.picture, plain));
    this.#image.drawn = true;
  }

  #point(event) {
    if (!this.#numbers) return;
    const { grid } = this.#numbers;
    const patch = patchAt(this.#seen, grid, event);
    if (!patch) return this.#leave();
    frame(this.#patch, grid, patch);
    this.#patch.hidden = false;
    byId("readout").textContent = this.#describe(patch);
  }

  #describe([row, column]) {
    const { values, grid, method } = this.#numbers;
    const signed = isSigned(method);
    const value = values[row * grid[1] + column];
    const total = values.reduce((sum, v) => sum + Math.abs(v), 0);
    const share = total ? Math.abs(value) / total : 0;
    const of = signed ? "of the sum of all sizes" : "of the mass on patches";
    return `Row ${row}, column ${column}: ${significant(value, { plus: signed })}, ${percent(share)} ${of}`;
  }

  #leave() {
    this.#patch.hidden = true;
    byId("readout").textContent = POINT;
  }
}

/** Scroll until a map that stands over the cells, as on a phone, shows the chosen one. */
function uncover(near) {
  const cell = near.parentElement.querySelector("[aria-pressed=true], .chosen")?.getBoundingClientRect();
  const { right, top } = near.getBoundingClientRect();
  if (cell && cell.top < innerHeight && right > cell.left && cell.bottom > top) scrollBy(0, cell.bottom - top + 8);
}
