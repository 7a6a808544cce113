// What if these patches were not there? The labels with and without them, and the real change of the logit beside the
// one that the evidence of these patches promised.

import { paintBoard } from "./board.js";
import { breakable, byId, element } from "./element.js";
import { coverAddress } from "./maps.js";
import { fixed, percent } from "./numbers.js";
import { measurement } from "./part.js";
import { subject } from "./sentence.js";
import { trackTable, tracks } from "./tracks.js";

const SHARE = 0.1; // of the patches, as the buttons say

/** The patches are painted on the `map` that is shown. */
export function showCover(state, map, classes) {
  const board = paintBoard(() => measuring.drop()); // what is shown belongs to other patches

  const measuring = measurement(state, "cover-part", {
    show: (measured) => {
      board.painted = measured.patches;
      count();
      measuring.keep(address(painted())); // by the patches, which stay when the map they were taken from goes
      byId("outcome").replaceChildren(labels(measured, classes), effects(measured));
      return summary(classes.named(measured, state.values));
    },
    clear: () => {
      byId("outcome").replaceChildren();
      count();
    },
  });

  const address = (which) => () => coverAddress(state.values, { ...which, fill: byId("fill").value });

  /** The painted patches, or all but the others where these are fewer: an address has room for some thousands. */
  function painted() {
    const chosen = new Set(board.painted);
    const others = [...Array(board.size).keys()].filter((i) => !chosen.has(i));
    return others.length && others.length < chosen.size ? { patches: others, rest: true } : { patches: [...chosen] };
  }

  function count() {
    const { length } = board.painted;
    byId("cover").disabled = byId("uncover").disabled = length === 0;
    byId("painted").textContent = `${length} of ${board.size} patches`;
  }

  function clear() {
    board.painted = [];
    measuring.drop();
  }

  state.follow(() => {
    byId("cover-part").hidden = !map.numbers; // the map shows the reason
    if (map.numbers) board.show(map.numbers, map.pixels);
    count();
  }, ["map"]);
  byId("fill").addEventListener("change", () => measuring.drop());
  byId("uncover").addEventListener("click", clear);
  state.follow(clear, ["id"]);
  const asks = { cover: painted, "cover-top": () => ({ share: SHARE }), "cover-rest": () => ({ share: SHARE, rest: true }) };
  for (const [button, which] of Object.entries(asks))
    byId(button).addEventListener("click", () => measuring.run(address(which()), "Covering …"));
}

/** The likeliest labels of the image as it is and as it is left, and in both the label that is followed. */
function labels({ index, before, after }, classes) {
  const row = (one) =>
    element(
      "li",
      { class: one.index === index ? "followed" : null },
      element("span", {}, breakable(classes.name(one.index))),
      element("i", { style: { "--share": one.score } }),
      percent(one.score),
    );
  const list = (title, { predictions, score }) => {
    const all = predictions.some((one) => one.index === index) ? predictions : [...predictions, { index, score }];
    return element("div", {}, element("h3", {}, title), element("ol", {}, ...all.map(row)));
  };
  return element("div", { class: "sides" }, list("With these patches", before), list("Without them", after));
}

/** Bars on one scale: the promise, what came of it, and each random set as a line. */
function effects({ evidence, effect, random_effects: random, random_effect: mean }) {
  const { line, bar, row } = tracks([evidence, effect, ...random]);
  const number = (value) => fixed(value, 3, { plus: true });
  const rows = [
    row(null, "Promised by their evidence", number(evidence), bar(0, evidence)),
    row(null, "Real, without them", number(effect), bar(0, effect)),
    row(null, `Real, without ${random.length} random sets: mean`, number(mean), ...random.map((at) => line("set", at))),
  ];
  return trackTable("receipt effects", rows, element("caption", {}, "Fall of the logit"));
}

function summary({ label, against, patches, evidence, effect, random_sets: sets, share_of_random_sets_as_large: share }) {
  const [these, many] = patches.length === 1 ? ["this patch", "one patch"] : [`these ${patches.length} patches`, "as many patches"];
  return (
    `Without ${these}, ${subject(label, against)} ${effect < 0 ? "rises" : "falls"} by ${fixed(Math.abs(effect), 2)}. ` +
    `The direct evidence promised a ${evidence < 0 ? "rise" : "fall"} of ${fixed(Math.abs(evidence), 2)}. ` +
    `${Math.round(share * sets)} of ${sets} random sets of ${many} change it at least as much.`
  );
}
