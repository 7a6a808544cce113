// Patches of the map that a person paints: with a mouse, a finger or keys.

import { byId, element, show } from "./element.js";
import { isSigned } from "./methods.js";
import { significant } from "./numbers.js";
import { isArrow, patchBeside } from "./patches.js";
import { bounded, place, ratioOf, wholeOf } from "./view.js";

/** Dispatches `change` when a person paints or clears a patch. */
export class Board extends EventTarget {
  #board = byId("board");
  #frame = byId("patches");
  #cells = [];
  #grid = [0, 0];
  #stroke; // whether the pointer, while it is down, paints or clears
  #changed = []; // what it has changed since it went down

  constructor() {
    super();
    this.#frame.addEventListener("pointerdown", (event) => this.#begin(event));
    this.#frame.addEventListener("pointerover", ({ target }) => this.#paint(target, this.#stroke));
    this.#frame.addEventListener("pointercancel", () => this.#undo()); // the finger scrolls the page
    for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => (this.#stroke = undefined));
    this.#frame.addEventListener("click", ({ target, detail }) => {
      if (detail === 0) this.#paint(target, !isPainted(target)); // a screen reader's click
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

  /** Show the part of the map on its image that the network saw, with the grid on it. `numbers`: the map as JSON, drawn as
   * `pixels`.
   */
  show(numbers, pixels) {
    const { grid, crop_box: seen, values, method } = numbers;
    const image = this.#board.querySelector("canvas");
    show(image, pixels);
    place(image, wholeOf(numbers.image), seen);
    if (String(grid) !== String(this.#grid)) this.#build(grid);
    this.#board.style.setProperty("--ratio", bounded(ratioOf(seen)));
    for (const [i, cell] of this.#cells.entries()) {
      const value = significant(values[i], { plus: isSigned(method) });
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

  #begin({ target, pointerId, button }) {
    target.releasePointerCapture(pointerId); // otherwise a finger stays with the cell that it touched first
    this.#stroke = button === 0 ? !isPainted(target) : undefined;
    this.#changed = [];
    this.#paint(target, this.#stroke);
  }

  #paint(cell, painted) {
    if (painted === undefined || cell.role !== "gridcell" || isPainted(cell) === painted) return;
    cell.ariaSelected = String(painted);
    this.#changed.push(cell);
    this.dispatchEvent(new Event("change"));
  }

  #undo() {
    for (const cell of this.#changed.splice(0)) this.#paint(cell, !isPainted(cell));
  }

  #press(event) {
    const [, columns] = this.#grid;
    const here = this.#cells.indexOf(event.target);
    if (event.key === " " || event.key === "Enter") this.#paint(event.target, !isPainted(event.target));
    else if (!isArrow(event)) return;
    else {
      const [row, column] = patchBeside(this.#grid, [Math.floor(here / columns), here % columns], event) ?? [];
      this.#cells[row * columns + column]?.focus();
    }
    event.preventDefault(); // otherwise the page scrolls
    event.stopPropagation(); // otherwise arrows change the layer
  }

  /** Tab comes back to the patch that had the focus last. */
  #reach(cell) {
    for (const other of this.#cells) other.tabIndex = other === cell ? 0 : -1;
  }
}

const isPainted = (cell) => cell.ariaSelected === "true";
