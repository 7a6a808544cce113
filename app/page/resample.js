// Enlarges a map as Pillow does, so that a map that is drawn here is the one that the service draws.

const FILTERS = {
  // how far a filter reaches, and its weight at a distance, both in patches
  nearest: [0.5, (x) => (x > -0.5 && x <= 0.5 ? 1 : 0)],
  bilinear: [1, (x) => Math.max(1 - Math.abs(x), 0)],
  bicubic: [2, (x) => cubic(Math.abs(x))],
};

const cubic = (x) => (x < 1 ? (1.5 * x - 2.5) * x * x + 1 : x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0);

/** For each of the new numbers the first old one that it is made of, and the weights of that and the next ones. */
function mixes(from, to, [reach, weight]) {
  const wide = Math.max(from / to, 1);
  return Array.from({ length: to }, (_, i) => {
    const centre = ((i + 0.5) * from) / to;
    const first = Math.max(Math.floor(centre - reach * wide + 0.5), 0);
    const last = Math.min(Math.floor(centre + reach * wide + 0.5), from);
    const weights = Array.from({ length: last - first }, (_, k) => weight((first + k - centre + 0.5) / wide));
    const sum = weights.reduce((a, b) => a + b, 0);
    return { first, weights: weights.map((w) => w / sum) };
  });
}

/** Each row of a grid made `width` numbers long. The result is the other way round: column by column. */
function stretch(values, [rows, columns], width, filter) {
  const wide = new Float32Array(width * rows);
  for (const [x, { first, weights }] of mixes(columns, width, filter).entries())
    for (let row = 0; row < rows; row++) {
      let sum = 0;
      for (let k = 0; k < weights.length; k++) sum += weights[k] * values[row * columns + first + k];
      wide[x * rows + row] = sum;
    }
  return wide;
}

/** Numbers from 0 to 1 of a grid [rows, columns] as a Float32Array of `width` by `height`, row by row. */
export function enlarge(values, [rows, columns], [width, height], interpolation) {
  const filter = FILTERS[interpolation];
  const wide = stretch(values, [rows, columns], width, filter);
  const large = stretch(wide, [width, rows], height, filter);
  return large.map((value) => Math.min(Math.max(value, 0), 1)); // bicubic overshoots
}
