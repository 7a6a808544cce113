// One plain sentence for each word of the field: where the pointer rests, the focus is, or a finger taps.

const MEANINGS = {
  evidence: "What a patch adds to the score of a label, or takes from it.",
  head: "Each layer has several heads. Each of them looks at the image in its own way.",
  layer: "The model works in layers, one after the other. Each builds on what the one before it has found.",
  logit: "The score of a label before all scores are turned into per cent.",
  patch: "The model cuts the image into patches: squares of one size.",
  "class token": "It collects what matters from all patches, and the answer is read from it.",
};

export function explainTerms() {
  for (const term of document.querySelectorAll("dfn")) {
    const text = term.textContent.toLowerCase();
    const name = Object.keys(MEANINGS).find((name) => text.startsWith(name)); // of one or of several
    term.tabIndex = 0;
    term.dataset.means = MEANINGS[name];
    term.setAttribute("aria-description", MEANINGS[name]);
  }
}
