// The parts of the logit of a class, one under the other. Each bar starts where the one before it ended.

import { json } from "./api.js";
import { byId, element } from "./element.js";
import { DEBOUNCE_MS, Latest } from "./latest.js";
import { receiptAddress } from "./maps.js";
import { fixed } from "./numbers.js";

const PARTS = [
  ["patches", "Image patches"],
  ["prefix", "Class token and other prefix tokens"],
  ["mlps", "MLPs"],
  ["constants", "Constants: embeddings, biases"],
  ["rounding", "Rounding"],
];

export class Receipt {
  #state;
  #loading = new Latest();

  constructor(state) {
    this.#state = state;
    state.addEventListener("change", ({ detail }) => {
      if (["id", "label", "against"].some((name) => detail.has(name))) this.draw();
    });
  }

  draw() {
    const values = this.#state.values;
    if (!values.id) return;
    this.#loading.run({
      waitMs: DEBOUNCE_MS,
      load: (signal) => json(receiptAddress(values), { signal }),
      show: (numbers) => this.#show(numbers),
      fail: (problem) => {
        byId("receipt").replaceChildren();
        byId("receipt-status").textContent = problem.message;
      },
    });
  }

  #show({ receipt, label, against }) {
    const steps = [];
    let sum = 0;
    for (const [name, title] of PARTS) {
      steps.push({ name, title, value: receipt[name], from: sum, to: sum + receipt[name] });
      sum += receipt[name];
    }
    const total = against ? `“${label}” − “${against}”` : `Logit for “${label}”`;
    steps.push({ name: "logit", title: total, value: receipt.logit, from: 0, to: receipt.logit });
    const ends = steps.flatMap(({ from, to }) => [from, to]);
    const low = Math.min(0, ...ends);
    const span = Math.max(0, ...ends) - low || 1;
    byId("receipt").replaceChildren(
      element("table", { class: "receipt" }, element("tbody", {}, ...steps.map((step) => row(step, low, span)))),
    );
    const share = Math.round((100 * receipt.patches) / receipt.logit);
    const what = against ? `the lead of “${label}” over “${against}”` : `the logit for “${label}”`;
    byId("receipt-status").textContent = `Patches contribute ${share} % of ${what} directly.`;
  }
}

function row({ name, title, value, from, to }, low, span) {
  const bar = element("i", { class: value < 0 ? "minus" : "plus" });
  Object.assign(bar.style, {
    left: `${(100 * (Math.min(from, to) - low)) / span}%`,
    width: `${(100 * Math.abs(value)) / span}%`,
  });
  const zero = element("i", { class: "zero" });
  zero.style.left = `${(-100 * low) / span}%`;
  return element(
    "tr",
    { class: name },
    element("th", { scope: "row" }, title),
    element("td", { class: "track" }, element("div", {}, zero, bar)),
    element("td", { class: "number" }, fixed(value, 3, { plus: name !== "logit" })),
  );
}
