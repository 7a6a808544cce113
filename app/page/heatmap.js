// The map on its image, as the server draws it, and the numbers under the pointer.

import { blob, json } from "./api.js";
import { byId } from "./element.js";
import { DEBOUNCE_MS, Latest } from "./latest.js";
import { STYLE, mapAddress, originalAddress } from "./maps.js";
import { percent, significant } from "./numbers.js";

const GONE = "The server no longer has the maps of this image. Add the file again to see them.";

export class Heatmap {
  #state;
  #numbers;
  #drawing = new Latest();
  #loadingOriginal = new Latest();
  #stage = byId("stage");
  #pane = byId("map-pane");
  #map = byId("map");
  #original = byId("original");
  #patch = byId("patch");

  constructor(state) {
    this.#state = state;
    state.addEventListener("change", ({ detail }) => {
      if (detail.has("beside") || detail.has("id")) this.#showOriginal();
      if (![...detail].every((name) => name === "beside")) this.draw(![...detail].every((name) => STYLE.includes(name)));
    });
    this.#pane.addEventListener("pointermove", (event) => this.#point(event));
    this.#pane.addEventListener("pointerdown", (event) => this.#point(event));
    this.#pane.addEventListener("pointerleave", ({ pointerType }) => pointerType === "mouse" && this.#leave()); // a touch leaves as soon as it ends
  }

  /** Give the stage the shape of the image before the image is loaded, so that nothing moves when it appears. */
  reserve({ width, height }) {
    this.#stage.style.setProperty("--ratio", Math.min(Math.max(width / height, 0.8), 1.6));
  }

  draw(fresh = true) {
    const values = this.#state.values;
    if (!values.id) return;
    this.#stage.ariaBusy = "true";
    for (const format of ["png", "json", "npy"]) {
      const link = byId(`take-${format}`);
      link.href = mapAddress(values, format);
      link.download = `${values.method}-${values.id.slice(0, 6)}.${format}`;
    }
    this.#drawing.run({
      waitMs: DEBOUNCE_MS,
      load: (signal) =>
        Promise.all([
          blob(mapAddress(values, "png"), { signal }),
          fresh || !this.#numbers ? json(mapAddress(values, "json"), { signal }) : this.#numbers,
        ]),
      show: ([png, numbers]) => this.#show(png, numbers),
      fail: (problem) => this.#fail(problem),
    });
    if (fresh) this.#numbers = undefined; // the old numbers belong to other controls
  }

  #show(png, numbers) {
    this.#numbers = numbers;
    replace(this.#map, png);
    const [width, height] = numbers.image;
    this.reserve({ width, height });
    this.#map.alt = `Map on the image: ${numbers.recipe}`;
    byId("recipe").textContent = `${numbers.recipe[0].toUpperCase()}${numbers.recipe.slice(1)}.`;
    byId("trouble").hidden = true;
    byId("work").classList.remove("gone");
    this.#pane.hidden = false;
    this.#stage.ariaBusy = "false";
    this.#leave();
  }

  #fail(problem) {
    this.#stage.ariaBusy = "false";
    this.#pane.hidden = true;
    byId("recipe").textContent = byId("readout").textContent = "";
    const gone = problem.status === 404;
    byId("trouble").textContent = gone ? GONE : problem.message;
    byId("trouble").hidden = false;
    byId("work").classList.toggle("gone", gone);
  }

  #showOriginal() {
    const { id, beside } = this.#state.values;
    byId("original-pane").hidden = beside !== "true";
    if (!id || beside !== "true") return;
    this.#loadingOriginal.run({
      load: (signal) => blob(originalAddress(this.#state.values), { signal }),
      show: (png) => replace(this.#original, png),
      fail: () => (byId("original-pane").hidden = true), // the map fails for the same reason and shows it
    });
  }

  /** Position of the image in its pane and its scale, in CSS pixels: `object-fit: contain` leaves space around it. */
  #place() {
    const { naturalWidth, naturalHeight, clientWidth, clientHeight } = this.#map;
    const scale = Math.min(clientWidth / naturalWidth, clientHeight / naturalHeight);
    const [width, height] = this.#numbers.image;
    const drawn = Math.min(naturalWidth / width, naturalHeight / height); // a colour bar adds space to the right or below
    return {
      left: (clientWidth - naturalWidth * scale) / 2,
      top: (clientHeight - naturalHeight * scale) / 2,
      scale: scale * drawn, // CSS pixels per pixel of the original
    };
  }

  #point(event) {
    if (!this.#numbers || !this.#map.naturalWidth) return;
    const frame = this.#map.getBoundingClientRect();
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
    const of = this.#signed ? "of total absolute evidence" : "of the mass on patches";
    return `Row ${row}, column ${column}: ${significant(value, { plus: this.#signed })}, ${percent(share)} ${of}`;
  }

  #leave() {
    this.#patch.hidden = true;
    if (!this.#numbers) return;
    const { grid, min, max, sum } = this.#numbers;
    const [low, high, all] = [min, max, sum].map((value) => significant(value, { plus: this.#signed }));
    byId("readout").textContent = `${grid[0]} × ${grid[1]} patches, ${low} to ${high}, sum\u00a0${all}`;
  }

  get #signed() {
    return this.#numbers.method === "evidence";
  }
}

function replace(image, png) {
  URL.revokeObjectURL(image.src);
  image.src = URL.createObjectURL(png);
}
