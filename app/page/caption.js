// What stands under the map: its colours, a sentence, and numbers for who asks.

import { showColorbar } from "./colormaps.js";
import { byId } from "./element.js";
import { isSigned } from "./methods.js";
import { significant } from "./numbers.js";
import { beyond, cropped, sentence } from "./sentence.js";

/** `numbers`: the map between the ends of its colours. Returns the sentence, which others show too. */
export function showCaption(numbers, values) {
  const { grid, method, limits, min, max, sum } = numbers;
  showColorbar(byId("ramp"), { limits, min, max, colormap: values.colormap });
  const [low, high, all] = [min, max, sum].map((value) => significant(value, { plus: isSigned(method) }));
  byId("range").textContent = `${grid[0]} × ${grid[1]} patches, ${low} to ${high}, sum\u00a0${all}.`;
  const outside = numbers.values.filter((value) => value < limits[0] || value > limits[1]);
  byId("beyond").textContent = beyond(outside.length, numbers.values.length);
  byId("cropped").textContent = cropped(numbers);
  return sentence(numbers, values.colormap);
}
