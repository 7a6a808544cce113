// What if these patches were not there? The labels with and without them, and the real change of the logit beside the
// one that the evidence of these patches promised.

import { json } from "./api.js";
import { Board } from "./board.js";
import { breakable, byId, element } from "./element.js";
import { Latest } from "./latest.js";
import { coverAddress } from "./maps.js";
import { fixed, percent } from "./numbers.js";
import { subject } from "./sentence.js";
import { tracks } from "./tracks.js";

const SHARE = 0.1; // of the patches, as the buttons say

export class Cover {
  #state;
  #classes;
  #board = new Board();
  #measuring = new Latest();
  #asked; // gives the address of what is measured or shown, by what the page shows now
  #address; // what it gave when that was asked

  /** The patches are painted on the map that `heatmap` shows. */
  constructor(state, { heatmap, classes }) {
    this.#state = state;
    this.#classes = classes;
    heatmap.addEventListener("show", ({ detail: { numbers, pixels } }) => {
      this.#board.show(numbers, pixels);
      byId("cover-part").hidden = false;
      if (!this.#asked) this.#count();
    });
    heatmap.addEventListener("fail", () => (byId("cover-part").hidden = true)); // the map shows the reason
    state.addEventListener("change", ({ detail }) => {
      if (detail.has("id")) this.#board.painted = [];
      if (this.#asked && this.#asked() !== this.#address) this.#clear();
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

  /** Remember what is asked, so that an answer is dropped when the page has come to show something else. */
  #ask(which = this.#patches) {
    this.#asked = () => coverAddress(this.#state.values, { ...which, fill: byId("fill").value });
    this.#address = this.#asked();
  }

  /** The painted patches, or all but the others where these are fewer: an address has room for some thousands. */
  get #patches() {
    const painted = new Set(this.#board.painted);
    const others = [...Array(this.#board.size).keys()].filter((i) => !painted.has(i));
    return others.length && others.length < painted.size ? { patches: others, rest: true } : { patches: [...painted] };
  }

  #measure(which) {
    this.#ask(which);
    byId("cover-status").textContent = "Covering …";
    this.#measuring.run({
      load: (signal) => json(this.#address, { method: "POST", signal }),
      show: (measured) => {
        this.#board.painted = measured.patches;
        this.#count();
        this.#ask(); // by the patches, which stay when the map they were taken from goes
        byId("cover-status").textContent = summary(this.#classes.named(measured, this.#state.values));
        byId("outcome").replaceChildren(labels(measured, this.#classes), effects(measured));
      },
      busy: (said) => (byId("cover-status").textContent = said),
      fail: (problem) => {
        this.#clear();
        byId("cover-status").textContent = problem.message;
      },
    });
  }

  /** Remove what belongs to other patches, another label or another fill. */
  #clear() {
    this.#measuring.cancel();
    this.#asked = undefined;
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
function labels({ index, before, after }, classes) {
  const list = (title, { predictions, score }) => {
    const isFollowed = (prediction) => prediction.index === index;
    const rows = (predictions.some(isFollowed) ? predictions : [...predictions, { index, score }]).map((prediction) => {
      const bar = element("i");
      bar.style.setProperty("--share", prediction.score);
      const name = breakable(classes.name(prediction.index));
      const followed = isFollowed(prediction) ? "followed" : null;
      return element("li", { class: followed }, element("span", {}, name), bar, percent(prediction.score));
    });
    return element("div", {}, element("h3", {}, title), element("ol", {}, ...rows));
  };
  return element("div", { class: "sides" }, list("With these patches", before), list("Without them", after));
}

/** Bars on one scale: the promise, what came of it, and each random set as a line. */
function effects({ evidence, effect, random_effects: random, random_effect: mean }) {
  const { line, bar, row } = tracks([evidence, effect, ...random]);
  const number = (value) => fixed(value, 3, { plus: true });
  return element(
    "table",
    { class: "receipt effects" },
    element("caption", {}, "Fall of the logit"),
    element(
      "tbody",
      {},
      row(null, "Promised by their evidence", number(evidence), bar(0, evidence)),
      row(null, "Real, without them", number(effect), bar(0, effect)),
      row(null, `Real, without ${random.length} random sets: mean`, number(mean), ...random.map((at) => line("set", at))),
    ),
  );
}

function summary({ label, against, patches, evidence, effect, random_sets: sets, share_of_random_sets_as_large: share }) {
  const [these, many] = patches.length === 1 ? ["this patch", "one patch"] : [`these ${patches.length} patches`, "as many patches"];
  return (
    `Without ${these}, ${subject(label, against)} ${effect < 0 ? "rises" : "falls"} by ${fixed(Math.abs(effect), 2)}. ` +
    `The direct evidence promised a ${evidence < 0 ? "rise" : "fall"} of ${fixed(Math.abs(evidence), 2)}. ` +
    `${Math.round(share * sets)} of ${sets} random sets of ${many} change it at least as much.`
  );
}
