// Which part of an image is shown.

const LONGEST = 2.5; // times the shorter side; a longer strip would leave no room for its patches

/** What the network saw, and around it as much of the image as is not too long: [x0, y0, x1, y1] in its pixels. */
export function around({ image: [width, height], crop_box: [x0, y0, x1, y1] }) {
  const [left, right] = stretch(x0, x1, width, LONGEST * height);
  const [top, bottom] = stretch(y0, y1, height, LONGEST * width);
  return [left, top, right, bottom];
}

/** Place a node that shows one part of an image in a frame that shows another one. */
export function place(node, [left, top, right, bottom], [x0, y0, x1, y1]) {
  const [across, down] = [x1 - x0, y1 - y0];
  Object.assign(node.style, {
    left: `${(100 * (left - x0)) / across}%`,
    top: `${(100 * (top - y0)) / down}%`,
    width: `${(100 * (right - left)) / across}%`,
    height: `${(100 * (bottom - top)) / down}%`,
  });
}

/** The whole image as a part of itself. */
export const wholeOf = ([width, height]) => [0, 0, width, height];

/** The shape of a part of an image: width by height. */
export const ratioOf = ([x0, y0, x1, y1]) => (x1 - x0) / (y1 - y0);

/** The same, of a frame that leaves room beside it. */
export const bounded = (ratio) => Math.min(Math.max(ratio, 1 / LONGEST), LONGEST);

function stretch(from, to, size, longest) {
  const length = Math.max(Math.min(size, longest), to - from);
  const start = Math.min(Math.max((from + to - length) / 2, 0), size - length);
  return [start, start + length];
}
