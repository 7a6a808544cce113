// Numbers as people read them: a true minus sign, as many digits as say something.

/** A share from 0 to 1 in per cent. What rounds to all or nothing without being it says so. */
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

/** Digits after the point, for columns that add up; one digit of what would vanish. */
export function fixed(value, digits, { plus = false } = {}) {
  const size = Math.abs(value);
  const vanishes = size !== 0 && size < 0.5 * 10 ** -digits;
  return sign(value, plus) + (vanishes ? exponential(size, 0) : size.toFixed(digits));
}

const sign = (value, plus) => (value < 0 ? "−" : plus && value > 0 ? "+" : "");

const exponential = (size, digits) => size.toExponential(digits).replace("-", "−");
