// The grid of patches on an image: the one under the pointer, the one beside another, and a frame around one.

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

const ifInside = ([rows, columns], [row, column]) =>
  row >= 0 && column >= 0 && row < rows && column < columns ? [row, column] : undefined;

/** [row, column] of the patch under the pointer, on a node that shows the whole grid; undefined beside it. */
export function patchAt(node, [rows, columns], { clientX, clientY }) {
  const { left, top, width, height } = node.getBoundingClientRect();
  return ifInside([rows, columns], [Math.floor((rows * (clientY - top)) / height), Math.floor((columns * (clientX - left)) / width)]);
}

export const isArrow = ({ key }) => key in STEPS;

/** The patch to which an arrow key leads from another one; undefined at the border. */
export const patchBeside = (grid, [row, column], { key }) => ifInside(grid, [row + STEPS[key][0], column + STEPS[key][1]]);

/** Let a mark frame a patch, on a node that shows the whole grid. */
export function frame(mark, [rows, columns], [row, column]) {
  const place = { left: column / columns, top: row / rows, width: 1 / columns, height: 1 / rows };
  for (const [side, share] of Object.entries(place)) mark.style[side] = `${100 * share}%`;
}
