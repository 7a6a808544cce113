// Which part of an image is shown.

const LONGEST = 2.5; // times the shorter side; a longer strip would leave no room for its patches

/** What the network saw, and around it as much of the image as is not too long: [x0, y0, x1, y1] in its pixels. */
export function around({ image: [width, height], crop_box: [x0, y0, x1, y1] }) {
  const [left, right] = stretch(x0, x1, width, LONGEST * height);
  const [top, bottom] = stretch(y0, y1, height, LONGEST * width);
  return [left, top, right, bottom];
}

/** Let an image fill its frame with this part of it. */
export function crop(node, { image: [width, height] }, [x0, y0, x1, y1]) {
  const [across, down] = [x1 - x0, y1 - y0];
  Object.assign(node.style, {
    left: `${(-100 * x0) / across}%`,
    top: `${(-100 * y0) / down}%`,
    width: `${(100 * width) / across}%`,
    height: `${(100 * height) / down}%`,
  });
}

/** The shape of an image that is shown: width by height. */
export const ratioOf = ([width, height]) => Math.min(Math.max(width / height, 1 / LONGEST), LONGEST);

function stretch(from, to, size, longest) {
  const length = Math.max(Math.min(size, longest), to - from);
  const start = Math.min(Math.max((from + to - length) / 2, 0), size - length);
  return [start, start + length];
}
