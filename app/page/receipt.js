// The parts of the logit of a label, one under the other. Each bar starts where the one before it ended.

import { json } from "./api.js";
import { byId } from "./element.js";
import { receiptAddress } from "./maps.js";
import { fixed } from "./numbers.js";
import { showPart } from "./part.js";
import { subject } from "./sentence.js";
import { trackTable, tracks } from "./tracks.js";

const PARTS = [
  ["patches", "Image patches"],
  ["prefix", "Class token and other prefix tokens"],
  ["mlps", "MLPs"],
  ["constants", "Constants: embeddings, biases"],
  ["rounding", "Rounding"],
];

export function showReceipt(state, classes) {
  showPart(state, "receipt-part", {
    names: ["id", "label", "against"],
    load: (values, signal) => json(receiptAddress(values), { signal }),
    show: (answer, values) => {
      const { receipt, comparison, label, against } = classes.named(answer, values);
      const own = receiptTable(receipt, against ? `“${label}” − “${against}”` : `Logit for “${label}”`);
      const lead = comparison ? [receiptTable(comparison.receipt, `“${label}” − “${comparison.against}”`)] : [];
      byId("receipt").replaceChildren(...lead, own);
      const patches = fixed(receipt.patches, 3, { plus: true });
      return `Patches contribute ${patches} to ${subject(label, against)} directly.`;
    },
  });
}

/** The parts of a `receipt`, and their sum, which is called `total`. */
export function receiptTable(receipt, total) {
  const whole = receipt.logit ?? receipt.cosine;
  const ends = [0];
  for (const [name] of PARTS) ends.push(ends.at(-1) + receipt[name]);
  const { bar, row } = tracks([...ends, whole]);
  const parts = PARTS.map(([name, title], i) => row(name, title, fixed(receipt[name], 3, { plus: true }), bar(ends[i], ends[i + 1])));
  return trackTable("receipt", [...parts, row("logit", total, fixed(whole, 3), bar(0, whole))]);
}
