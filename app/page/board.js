// Patches of the map that a person paints: with a mouse, a finger or keys.

import { byId, element, show } from "./element.js";
import { isSigned } from "./methods.js";
import { significant } from "./numbers.js";
import { isArrow, patchBeside } from "./patches.js";
import { bounded, place, ratioOf, wholeOf } from "./view.js";

/** `changed` is called when a person paints or clears a patch. */
export function paintBoard(changed) {
  const [board, frame] = [byId("board"), byId("patches")];
  let cells = [];
  let grid = [0, 0];
  let stroke; // whether the pointer, while it is down, paints or clears
  let touched = []; // what it has changed since it went down

  function build([rows, columns]) {
    const cell = () => element("div", { role: "gridcell", tabindex: -1, "aria-selected": "false" });
    cells = Array.from({ length: rows * columns }, cell);
    frame.style.setProperty("grid-template", `repeat(${rows}, 1fr) / repeat(${columns}, 1fr)`);
    const row = (_, i) => element("div", { role: "row" }, cells.slice(i * columns, (i + 1) * columns));
    frame.replaceChildren(...Array.from({ length: rows }, row));
    grid = [rows, columns];
    reach(cells[0]);
  }

  function paint(cell, painted) {
    if (painted === undefined || cell.role !== "gridcell" || isPainted(cell) === painted) return;
    cell.ariaSelected = String(painted);
    touched.push(cell);
    changed();
  }

  /** Tab comes back to the patch that had the focus last. */
  function reach(cell) {
    for (const other of cells) other.tabIndex = other === cell ? 0 : -1;
  }

  frame.addEventListener("pointerdown", ({ target, pointerId, button }) => {
    target.releasePointerCapture(pointerId); // otherwise a finger stays with the cell that it touched first
    stroke = button === 0 ? !isPainted(target) : undefined;
    touched = [];
    paint(target, stroke);
  });
  frame.addEventListener("pointerover", ({ target }) => paint(target, stroke));
  frame.addEventListener("pointercancel", () => { // the finger scrolls the page
    for (const cell of touched.splice(0)) paint(cell, !isPainted(cell));
  });
  for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => (stroke = undefined));
  frame.addEventListener("click", ({ target, detail }) => {
    if (detail === 0) paint(target, !isPainted(target)); // a screen reader's click
  });
  frame.addEventListener("focusin", ({ target }) => reach(target));
  frame.addEventListener("keydown", (event) => {
    const here = cells.indexOf(event.target);
    if (event.key === " " || event.key === "Enter") paint(event.target, !isPainted(event.target));
    else if (!isArrow(event)) return;
    else {
      const [row, column] = patchBeside(grid, [Math.floor(here / grid[1]), here % grid[1]], event) ?? [];
      cells[row * grid[1] + column]?.focus();
    }
    event.preventDefault(); // otherwise the page scrolls
    event.stopPropagation(); // otherwise arrows change the layer
  });

  return {
    /** Numbers of the painted patches, row by row from 0. */
    get painted() {
      return [...cells.keys()].filter((i) => isPainted(cells[i]));
    },

    set painted(numbers) {
      for (const [i, cell] of cells.entries()) cell.ariaSelected = String(numbers.includes(i));
    },

    get size() {
      return cells.length;
    },

    /** Show the part of the map on its image that the network saw, with the grid on it. `numbers`: the map as JSON, drawn
     * as `pixels`.
     */
    show(numbers, pixels) {
      const { crop_box: part, values, method } = numbers;
      const image = board.querySelector("canvas");
      show(image, pixels);
      place(image, wholeOf(numbers.image), part);
      if (String(numbers.grid) !== String(grid)) build(numbers.grid);
      board.style.setProperty("--ratio", bounded(ratioOf(part)));
      for (const [i, cell] of cells.entries()) {
        const value = significant(values[i], { plus: isSigned(method) });
        cell.ariaLabel = `Row ${Math.floor(i / grid[1])}, column ${i % grid[1]}: ${value}`;
      }
    },
  };
}

const isPainted = (cell) => cell.ariaSelected === "true";
