// Numbers as text, with a true minus sign and only the digits that matter.

/** A share from 0 to 1 in per cent. Shares that would wrongly round to 0 or 100 % become "< 0.01 %" or "> 99.99 %". */
export function percent(share) {
  if (share > 0 && share < 1e-4) return "< 0.01 %";
  if (share < 1 && share > 0.9999) return "> 99.99 %";
  return `${(100 * share).toFixed(share < 0.0995 || (share > 0.9 && share < 1) ? 2 : 1)} %`;
}

/** Three significant digits. */
export function significant(value, { plus = false } = {}) {
  const size = Math.abs(value);
  return sign(value, plus) + (size !== 0 && size < 1e-4 ? exponential(size, 2) : size.toPrecision(3));
}

/** A fixed number of decimals, for columns that add up. A number that would round to zero becomes exponential. */
export function fixed(value, digits, { plus = false } = {}) {
  const size = Math.abs(value);
  const vanishes = size !== 0 && size < 0.5 * 10 ** -digits;
  return sign(value, plus) + (vanishes ? exponential(size, 0) : size.toFixed(digits));
}

const sign = (value, plus) => (value < 0 ? "−" : plus && value > 0 ? "+" : "");

const exponential = (size, digits) => size.toExponential(digits).replace("-", "−");
