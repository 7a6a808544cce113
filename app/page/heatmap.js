// The map on its image, drawn from its numbers, and the numbers under the pointer.

import { idNow, json } from "./api.js";
import { showCaption } from "./caption.js";
import { drawMap } from "./draw.js";
import { byId } from "./element.js";
import { DEBOUNCE_MS, Latest } from "./latest.js";
import { STYLE, endsOf, isOnWall, mapAddress, scaleOf } from "./maps.js";
import { METHODS, isSigned } from "./methods.js";
import { percent, significant } from "./numbers.js";
import { pictureOf, pixelsOf, show } from "./picture.js";
import { around, crop, ratioOf } from "./view.js";

const POINT = `${matchMedia("(hover: none)").matches ? "Tap" : "Point at"} a patch to read its number.`;
const GONE =
  "The server no longer has the maps of this image. It keeps an image for a limited time, 15 minutes unless it is set " +
  "otherwise. Add the file again to see them.";
const APART = ["beside", "wipe", "tab", "other", "added"]; // values that no map depends on
const WHOLE = { left: 0, top: 0, width: "100%", height: "100%" };

/** Dispatches `show` with the map as JSON has it and its pixels when another one is shown, and `fail` when none is. */
export class Heatmap extends EventTarget {
  #state;
  #classes;
  #stock;
  #likely = [];
  #image = {}; // that is shown: its `id`, its `picture` and where the network looked
  #numbers;
  #drawing = new Latest();
  #previewed;
  #stage = byId("stage");
  #pane = byId("map-pane");
  #map = byId("map");
  #original = byId("original");
  #wipe = byId("wipe");
  #patch = byId("patch");

  /** `stock`: where all maps of an image are loaded to, once its first map is shown. */
  constructor(state, classes, stock) {
    super();
    this.#state = state;
    this.#classes = classes;
    this.#stock = stock;
    state.addEventListener("change", ({ detail }) => {
      const names = [...detail].filter((name) => !APART.includes(name));
      if (names.length) this.draw({ fresh: !names.every((name) => STYLE.includes(name)), waitMs: detail.has("id") ? 0 : DEBOUNCE_MS });
      this.#showOriginal();
    });
    byId("retry").addEventListener("click", () => this.draw({ fresh: true, waitMs: 0 }));
    this.#wipe.addEventListener("input", () => state.set({ wipe: this.#wipe.value }));
    this.#pane.addEventListener("pointermove", (event) => this.#point(event));
    this.#pane.addEventListener("pointerdown", (event) => this.#point(event));
    this.#pane.addEventListener("pointerleave", ({ pointerType }) => pointerType === "mouse" && this.#leave()); // a touch leaves as soon as it ends
  }

  /** The classes of the image, indices, the most likely first. */
  set likely(predictions) {
    this.#likely = predictions.map(({ index }) => index);
  }

  /** Give the stage the shape of the image before the image is loaded, so that nothing moves when it appears. */
  reserve({ width, height }) {
    byId("answer").style.setProperty("--ratio", ratioOf([width, height]));
  }

  /** Show a file that is on its way to the model. */
  async preview(file) {
    this.#previewed = file;
    this.#stage.ariaBusy = "true";
    const pixels = await pixelsOf(file).catch(() => undefined);
    if (!pixels || this.#previewed !== file) return;
    this.#drawing.cancel();
    Object.assign(this.#map.style, WHOLE);
    this.reserve(pixels);
    this.#say("");
    show(this.#map, pixels);
  }

  draw({ fresh, waitMs }) {
    const values = this.#state.values;
    if (values.id) this.#previewed = undefined;
    const ready = values.id && this.#image.id === values.id && (fresh ? this.#inStock(values) : this.#numbers);
    this.#drawing.cancel(); // it is of other controls, or of an image that was left
    if (ready) this.#show(ready, values);
    else if (values.id) this.#load(values, waitMs, METHODS[values.method].passes ?? [undefined]);
  }

  #inStock(values) {
    const index = values.label ? this.#classes.index(values.label) : this.#likely[0];
    const numbers = this.#stock.map(values, { likely: this.#likely, index, against: this.#classes.index(values.against) });
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
    const limits = endsOf(scaleOf(values, found), found.limits);
    const numbers = (this.#numbers = found);
    this.#link(values, numbers);
    const pixels = drawMap({ ...numbers, limits }, this.#image.picture, values);
    show(this.#map, pixels);
    this.reserve(pixels);
    this.#showOriginal();
    for (const image of [this.#map, this.#original]) crop(image, numbers, around(numbers));
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

  /** Position of the whole image in its pane and its scale, in CSS pixels: `object-fit: contain` leaves space around it. */
  #place() {
    const { width, height, clientWidth, clientHeight, offsetLeft, offsetTop } = this.#map;
    const scale = Math.min(clientWidth / width, clientHeight / height);
    return {
      left: offsetLeft + (clientWidth - width * scale) / 2,
      top: offsetTop + (clientHeight - height * scale) / 2,
      scale: (width * scale) / this.#numbers.image[0], // CSS pixels per pixel of the original
    };
  }

  #point(event) {
    if (!this.#numbers) return;
    const frame = this.#pane.getBoundingClientRect();
    const { left, top, scale } = this.#place();
    const [x0, y0, x1, y1] = this.#numbers.crop_box;
    const [rows, columns] = this.#numbers.grid;
    const cell = [((x1 - x0) / columns) * scale, ((y1 - y0) / rows) * scale];
    const corner = [left + x0 * scale, top + y0 * scale];
    const column = Math.floor((event.clientX - frame.left - corner[0]) / cell[0]);
    const row = Math.floor((event.clientY - frame.top - corner[1]) / cell[1]);
    if (row < 0 || column < 0 || row >= rows || column >= columns) {
      this.#leave();
      return;
    }
    Object.assign(this.#patch.style, {
      left: `${corner[0] + column * cell[0]}px`,
      top: `${corner[1] + row * cell[1]}px`,
      width: `${cell[0]}px`,
      height: `${cell[1]}px`,
    });
    this.#patch.hidden = false;
    byId("readout").textContent = this.#describe(row, column);
  }

  #describe(row, column) {
    const { values, grid } = this.#numbers;
    const value = values[row * grid[1] + column];
    const total = values.reduce((sum, v) => sum + Math.abs(v), 0);
    const share = total ? Math.abs(value) / total : 0;
    const of = this.#signed ? "of the sum of all sizes" : "of the mass on patches";
    return `Row ${row}, column ${column}: ${significant(value, { plus: this.#signed })}, ${percent(share)} ${of}`;
  }

  #leave() {
    this.#patch.hidden = true;
    byId("readout").textContent = POINT;
  }

  get #signed() {
    return isSigned(this.#numbers.method);
  }
}

/** Scroll until a map that stands over the cells, as on a phone, shows the chosen one. */
function uncover(near) {
  const cell = near.parentElement.querySelector("[aria-pressed=true], .chosen")?.getBoundingClientRect();
  const { right, top } = near.getBoundingClientRect();
  if (cell && cell.top < innerHeight && right > cell.left && cell.bottom > top) scrollBy(0, cell.bottom - top + 8);
}
