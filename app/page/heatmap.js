// The map on its image, as the server draws it, and the numbers under the pointer.

import { blob, idNow, json } from "./api.js";
import { showCaption } from "./caption.js";
import { byId } from "./element.js";
import { DEBOUNCE_MS, Latest } from "./latest.js";
import { STYLE, isOnWall, mapAddress, originalAddress } from "./maps.js";
import { METHODS, isSigned } from "./methods.js";
import { percent, significant } from "./numbers.js";
import { around, crop, ratioOf } from "./view.js";

const POINT = `${matchMedia("(hover: none)").matches ? "Tap" : "Point at"} a patch to read its number.`;
const GONE =
  "The server no longer has the maps of this image. It keeps an image for a limited time, 15 minutes unless it is set " +
  "otherwise. Add the file again to see them.";
const APART = ["beside", "wipe", "tab"]; // values that no map depends on

/** Dispatches `show` with the map as JSON when another one is shown, and `fail` when none is. */
export class Heatmap extends EventTarget {
  #state;
  #classes;
  #numbers;
  #step; // of the passes of the map, where it takes any: which of their numbers is drawn
  #drawing = new Latest();
  #loadingOriginal = new Latest();
  #stage = byId("stage");
  #pane = byId("map-pane");
  #map = byId("map");
  #original = byId("original");
  #originalId = ""; // of the image that it shows
  #wipe = byId("wipe");
  #patch = byId("patch");

  constructor(state, classes) {
    super();
    this.#state = state;
    this.#classes = classes;
    state.addEventListener("change", ({ detail }) => {
      const names = [...detail].filter((name) => !APART.includes(name));
      if (names.length) this.draw({ fresh: !names.every((name) => STYLE.includes(name)), waitMs: detail.has("id") ? 0 : DEBOUNCE_MS });
      this.#showOriginal();
    });
    byId("retry").addEventListener("click", () => this.draw({ fresh: true, waitMs: 0 }));
    this.#wipe.addEventListener("input", () => state.set({ wipe: this.#wipe.value }));
    this.#pane.addEventListener("dragstart", (event) => {
      if (this.#wipe.matches(":active")) event.preventDefault(); // the image below the handle stays
    });
    this.#pane.addEventListener("pointermove", (event) => this.#point(event));
    this.#pane.addEventListener("pointerdown", (event) => this.#point(event));
    this.#pane.addEventListener("pointerleave", ({ pointerType }) => pointerType === "mouse" && this.#leave()); // a touch leaves as soon as it ends
  }

  /** Give the stage the shape of the image before the image is loaded, so that nothing moves when it appears. */
  reserve({ width, height }) {
    byId("answer").style.setProperty("--ratio", ratioOf([width, height]));
  }

  draw({ fresh, waitMs }) {
    const values = this.#state.values;
    if (!values.id) {
      this.#drawing.cancel(); // it is of an image that was left
      return;
    }
    this.#stage.ariaBusy = "true";
    if (fresh) [this.#numbers, this.#step] = [undefined, 0]; // the old numbers belong to other controls
    this.#link(values, this.#numbers);
    this.#load(values, waitMs);
  }

  #load(values, waitMs) {
    const steps = METHODS[values.method].passes ?? [];
    const passes = steps[this.#step];
    this.#drawing.run({
      waitMs,
      load: async (signal) => {
        const numbers = this.#numbers ?? (await json(mapAddress(values, "json", undefined, passes), { signal }));
        return [await blob(mapAddress(values, "png", numbers, passes), { signal }), numbers];
      },
      show: ([png, numbers]) => {
        this.#show(png, numbers, values);
        if (this.#step + 1 >= steps.length) return;
        [this.#numbers, this.#step] = [undefined, this.#step + 1]; // the server goes on from these passes
        this.#stage.ariaBusy = "true";
        this.#load(values, 0);
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

  #show(png, numbers, values) {
    this.#numbers = numbers;
    this.#link(values, numbers);
    replace(this.#map, png);
    const [width, height] = numbers.image;
    this.reserve({ width, height });
    for (const image of [this.#map, this.#original]) crop(image, numbers, around(numbers));
    const said = showCaption(this.#classes.named(numbers, values), values);
    this.#map.alt = `Map on the image. ${said}`;
    for (const node of document.querySelectorAll(".said")) node.textContent = said;
    for (const near of document.querySelectorAll(".near")) {
      near.hidden = !isOnWall(values);
      near.firstElementChild.src = this.#map.src;
      uncover(near);
    }
    this.#say("");
    document.body.classList.remove("gone");
    this.#stage.ariaBusy = "false";
    this.#leave();
    this.dispatchEvent(new CustomEvent("show", { detail: numbers }));
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

  /** Beside the map, or over the left of it up to the handle. */
  #showOriginal() {
    const { id, beside, wipe } = this.#state.values;
    const [apart, shown] = [beside === "true", beside === "true" || Number(wipe) > 0];
    byId("original-pane").hidden = !shown;
    this.#stage.classList.toggle("beside", apart);
    this.#stage.style.setProperty("--wipe", wipe);
    this.#wipe.value = wipe;
    this.#wipe.ariaValueText = `${Math.round(100 * wipe)} % original`;
    if (!shown || !id || id === this.#originalId) return;
    this.#originalId = id;
    URL.revokeObjectURL(this.#original.src);
    this.#original.removeAttribute("src"); // it is of another image
    this.#loadingOriginal.run({
      load: (signal) => blob(originalAddress(this.#state.values), { signal }),
      show: (png) => replace(this.#original, png),
      fail: () => (this.#originalId = ""), // the map fails for the same reason and shows it
    });
  }

  /** Position of the whole image in its pane and its scale, in CSS pixels: `object-fit: contain` leaves space around it. */
  #place() {
    const { naturalWidth, naturalHeight, clientWidth, clientHeight, offsetLeft, offsetTop } = this.#map;
    const scale = Math.min(clientWidth / naturalWidth, clientHeight / naturalHeight);
    return {
      left: offsetLeft + (clientWidth - naturalWidth * scale) / 2,
      top: offsetTop + (clientHeight - naturalHeight * scale) / 2,
      scale: (naturalWidth * scale) / this.#numbers.image[0], // CSS pixels per pixel of the original
    };
  }

  #point(event) {
    if (!this.#numbers || !this.#map.naturalWidth) return;
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

function replace(image, png) {
  URL.revokeObjectURL(image.src);
  image.src = URL.createObjectURL(png);
}
