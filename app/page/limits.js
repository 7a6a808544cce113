// Which number gets the first colour and which the last, as the service has it in app/drawing/colors.py.

const [UPPER, REACH] = [0.98, 4 / 3];

/** The ends [low, high] of one map. `siblings` gives the numbers of those that a shared scale compares it with. */
export function limitsOf(values, siblings, scale, signed) {
  if (scale === "absolute") return [signed ? -1 : 0, 1];
  const of = scale.endsWith("shared") ? siblings() : values;
  let [low, high] = scale.startsWith("robust") ? robust(of, signed) : range(of);
  if (scale === "percentile") {
    const [first, last] = percentiles(values, [0.01, 0.99]);
    if (first !== last) [low, high] = [first, last];
  }
  if (!signed) return [low, high];
  const bound = Math.max(Math.abs(low), Math.abs(high)) || 1;
  return [-bound, bound];
}

function robust(numbers, signed) {
  const sizes = signed ? numbers.map(Math.abs) : numbers;
  const [least, high] = range(sizes);
  const low = signed ? 0 : least;
  const reach = REACH * (percentiles(sizes, [UPPER])[0] - low);
  return [low, reach ? Math.min(high, low + reach) : high];
}

export function range(numbers) {
  let [low, high] = [Infinity, -Infinity];
  for (const number of numbers) [low, high] = [Math.min(low, number), Math.max(high, number)];
  return [low, high];
}

/** As NumPy has them: between two numbers, in proportion. */
function percentiles(numbers, shares) {
  const sorted = Float64Array.from(numbers).sort();
  return shares.map((share) => {
    const place = share * (sorted.length - 1);
    const below = sorted[Math.floor(place)];
    return below + (place % 1) * (sorted[Math.ceil(place)] - below);
  });
}
