// Patches of the map that a person paints: with the mouse, by touch or with keys.

import { byId, element } from "./element.js";
import { significant } from "./numbers.js";

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/** Dispatches `change` when a person paints or clears a patch. */
export class Board extends EventTarget {
  #frame = byId("patches");
  #cells = [];
  #grid = [0, 0];
  #stroke; // whether the mouse paints or clears, as it began; undefined after a touch

  constructor() {
    super();
    this.#frame.addEventListener("pointerdown", (event) => this.#begin(event));
    this.#frame.addEventListener("pointerover", ({ target, buttons }) => buttons === 1 && this.#paint(target, this.#stroke));
    this.#frame.addEventListener("click", ({ target, detail }) => {
      const touched = this.#stroke === undefined || detail === 0; // 0: a screen reader's click
      if (touched) this.#paint(target, !isPainted(target));
    });
    this.#frame.addEventListener("keydown", (event) => this.#press(event));
    this.#frame.addEventListener("focusin", ({ target }) => this.#reach(target));
  }

  /** Numbers of the painted patches, row by row from 0. */
  get painted() {
    return [...this.#cells.keys()].filter((i) => isPainted(this.#cells[i]));
  }

  set painted(numbers) {
    for (const [i, cell] of this.#cells.entries()) cell.ariaSelected = String(numbers.includes(i));
  }

  get size() {
    return this.#cells.length;
  }

  /** Lay the grid over the part of the image that the network saw. The arguments are those of a map's JSON. */
  show({ grid, crop_box: [x0, y0, x1, y1], image: [width, height], values, method }) {
    if (String(grid) !== String(this.#grid)) this.#build(grid);
    Object.assign(this.#frame.style, {
      left: `${(100 * x0) / width}%`,
      top: `${(100 * y0) / height}%`,
      width: `${(100 * (x1 - x0)) / width}%`,
      height: `${(100 * (y1 - y0)) / height}%`,
    });
    for (const [i, cell] of this.#cells.entries()) {
      const value = significant(values[i], { plus: method === "evidence" });
      cell.ariaLabel = `Row ${Math.floor(i / grid[1])}, column ${i % grid[1]}: ${value}`;
    }
  }

  #build(grid) {
    const [rows, columns] = (this.#grid = grid);
    const cell = () => element("div", { role: "gridcell", tabindex: -1, "aria-selected": "false" });
    this.#cells = Array.from({ length: rows * columns }, cell);
    this.#frame.style.setProperty("grid-template", `repeat(${rows}, 1fr) / repeat(${columns}, 1fr)`);
    const row = (_, i) => element("div", { role: "row" }, this.#cells.slice(i * columns, (i + 1) * columns));
    this.#frame.replaceChildren(...Array.from({ length: rows }, row));
    this.#reach(this.#cells[0]);
  }

  /** A finger that moves scrolls the page, so a touch paints the one cell that it taps. */
  #begin({ target, pointerType, button }) {
    this.#stroke = pointerType === "touch" || button !== 0 ? undefined : !isPainted(target);
    this.#paint(target, this.#stroke);
  }

  #paint(cell, painted) {
    if (painted === undefined || cell.role !== "gridcell" || isPainted(cell) === painted) return;
    cell.ariaSelected = String(painted);
    this.dispatchEvent(new Event("change"));
  }

  #press(event) {
    const [rows, columns] = this.#grid;
    const here = this.#cells.indexOf(event.target);
    const [down, right] = STEPS[event.key] ?? [0, 0];
    const [row, column] = [Math.floor(here / columns) + down, (here % columns) + right];
    if (event.key === " " || event.key === "Enter") this.#paint(event.target, !isPainted(event.target));
    else if (!(event.key in STEPS)) return;
    else if (row >= 0 && column >= 0 && row < rows && column < columns) this.#cells[row * columns + column].focus();
    event.preventDefault(); // otherwise the page scrolls
    event.stopPropagation(); // otherwise arrows change the layer
  }

  /** Tab comes back to the patch that had the focus last. */
  #reach(cell) {
    for (const other of this.#cells) other.tabIndex = other === cell ? 0 : -1;
  }
}

const isPainted = (cell) => cell.ariaSelected === "true";
