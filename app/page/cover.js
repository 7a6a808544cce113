// What if these patches were not there? The labels with and without them, and the real change of the logit beside the
// one that the evidence of these patches promised.

import { blob, json } from "./api.js";
import { Board } from "./board.js";
import { breakable, byId, element } from "./element.js";
import { DEBOUNCE_MS, Latest } from "./latest.js";
import { coverAddress, mapAddress } from "./maps.js";
import { fixed, percent } from "./numbers.js";

const SHARE = 0.1; // of the patches, as the buttons say

export class Cover {
  #state;
  #board = new Board();
  #drawing = new Latest();
  #measuring = new Latest();
  #measured; // the address of what is shown

  constructor(state) {
    this.#state = state;
    state.addEventListener("change", ({ detail }) => {
      if (detail.has("id")) this.#board.painted = [];
      if ([...detail].some((name) => !["beside", "colorbar"].includes(name))) this.#draw();
      if (this.#measured !== undefined && this.#measured !== this.#address()) this.#clear();
    });
    this.#board.addEventListener("change", () => this.#clear());
    byId("fill").addEventListener("change", () => this.#clear());
    byId("cover-top").addEventListener("click", () => this.#measure({ share: SHARE }));
    byId("cover-rest").addEventListener("click", () => this.#measure({ share: SHARE, rest: true }));
    byId("cover").addEventListener("click", () => this.#measure());
    byId("uncover").addEventListener("click", () => {
      this.#board.painted = [];
      this.#clear();
    });
  }

  #address(which = { patches: this.#board.painted }) {
    return coverAddress(this.#state.values, { ...which, fill: byId("fill").value });
  }

  /** The map on show, without its colour bar, so that the grid fits. */
  #draw() {
    const values = { ...this.#state.values, colorbar: "false" };
    if (!values.id) return;
    this.#drawing.run({
      waitMs: 2 * DEBOUNCE_MS, // the browser has both by then, from the map above
      load: async (signal) => {
        const numbers = await json(mapAddress(values, "json"), { signal });
        return [await blob(mapAddress(values, "png"), { signal }), numbers];
      },
      show: ([png, numbers]) => {
        const image = byId("board").querySelector("img");
        URL.revokeObjectURL(image.src);
        image.src = URL.createObjectURL(png);
        this.#board.show(numbers);
        byId("cover-part").hidden = false;
        if (this.#measured === undefined) this.#count();
      },
      fail: () => (byId("cover-part").hidden = true), // the map shows the reason
    });
  }

  #measure(which) {
    this.#measured = undefined;
    byId("cover-status").textContent = "Covering …";
    this.#measuring.run({
      load: (signal) => json(this.#address(which), { method: "POST", signal }),
      show: (measured) => {
        this.#board.painted = measured.patches;
        this.#count();
        this.#measured = this.#address();
        byId("cover-status").textContent = summary(measured);
        byId("outcome").replaceChildren(labels(measured), effects(measured));
      },
      fail: (problem) => {
        this.#clear();
        byId("cover-status").textContent = problem.message;
      },
    });
  }

  /** Remove what belongs to other patches, another label or another fill. */
  #clear() {
    this.#measuring.cancel();
    this.#measured = undefined;
    byId("outcome").replaceChildren();
    byId("cover-status").textContent = "";
    this.#count();
  }

  #count() {
    const { length } = this.#board.painted;
    byId("cover").disabled = byId("uncover").disabled = length === 0;
    byId("painted").textContent = `${length} of ${this.#board.size} patches`;
  }
}

/** The likeliest labels of the image as it is and as it is left, and in both the label that is followed. */
function labels({ label, before, after }) {
  const list = (title, { predictions, score }) => {
    const all = predictions.some((prediction) => prediction.label === label) ? predictions : [...predictions, { label, score }];
    const rows = all.map((prediction) => {
      const bar = element("i");
      bar.style.setProperty("--share", prediction.score);
      const followed = prediction.label === label ? "followed" : null;
      return element("li", { class: followed }, element("span", {}, breakable(prediction.label)), bar, percent(prediction.score));
    });
    return element("div", {}, element("h3", {}, title), element("ol", {}, ...rows));
  };
  return element("div", { class: "sides" }, list("With these patches", before), list("Without them", after));
}

/** Bars on one scale: the promise, what came of it, and each random set as a line. */
function effects({ evidence, effect, random_effects: random, random_effect: mean }) {
  const low = Math.min(0, evidence, effect, ...random);
  const span = Math.max(0, evidence, effect, ...random) - low || 1;
  const place = (value) => `${(100 * (value - low)) / span}%`;
  const line = (className, value) => {
    const mark = element("i", { class: className });
    mark.style.left = place(value);
    return mark;
  };
  const bar = (value) => {
    const mark = line(value < 0 ? "minus" : "plus", Math.min(value, 0));
    mark.style.width = `${(100 * Math.abs(value)) / span}%`;
    return mark;
  };
  const row = (title, value, ...marks) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, title),
      element("td", { class: "track" }, element("div", {}, line("zero", 0), ...marks)),
      element("td", { class: "number" }, fixed(value, 3, { plus: true })),
    );
  return element(
    "table",
    { class: "receipt effects" },
    element("caption", {}, "Fall of the logit"),
    element(
      "tbody",
      {},
      row("Promised by their evidence", evidence, bar(evidence)),
      row("Real, without them", effect, bar(effect)),
      row(`Real, without ${random.length} random sets: mean`, mean, ...random.map((value) => line("set", value))),
    ),
  );
}

function summary({ label, against, patches, evidence, effect, random_sets: sets, random_as_much: share }) {
  const what = against ? `the lead of “${label}” over “${against}”` : `the logit for “${label}”`;
  const [these, many] = patches.length === 1 ? ["this patch", "one patch"] : [`these ${patches.length} patches`, "as many patches"];
  return (
    `Without ${these}, ${what} ${effect < 0 ? "rises" : "falls"} by ${fixed(Math.abs(effect), 2)}. ` +
    `The direct evidence promised a ${evidence < 0 ? "rise" : "fall"} of ${fixed(Math.abs(evidence), 2)}. ` +
    `${Math.round(share * sets)} of ${sets} random sets of ${many} change it at least as much.`
  );
}
