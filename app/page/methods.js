// The methods of a map, in the order of the page. Everything else on the page reads this list.
//
// `title` and `meaning` are for people, `takes` are the parameters that change the map, and `layers` are the layers that
// have a name. Evidence, positive or not, and measured maps are for one label; attention is the same for all. `passes` are
// runs of the model that a map takes, a quarter of them for its first picture; the others need none of their own.

const LABEL = ["layer", "label", "against"];

export const METHODS = {
  evidence: {
    title: "Evidence",
    meaning: "What each patch adds to a label’s logit (red) or takes from it (blue): its exact direct effect.",
    takes: LABEL,
    layers: ["sum", "mean"],
    signed: true,
  },
  positive_evidence: {
    title: "Positive evidence",
    meaning: "What each patch adds in any layer, times rollout. It finds more that matters, but adds up to no logit.",
    takes: LABEL,
    layers: ["sum", "mean"],
  },
  class_token: {
    title: "Class token",
    meaning: "How strongly the class token, or what stands for it, attends to each patch in one layer.",
    takes: ["layer", "head"],
    layers: ["mean"],
  },
  rollout: {
    title: "Rollout",
    meaning: "Where the model looks through all layers: attention and residual, multiplied.",
    takes: [],
    layers: [],
  },
  measured: {
    title: "Measured",
    meaning: "What really changes when patches are covered: red ones raise a label, blue ones lower it. It runs the model.",
    takes: ["label", "against"],
    layers: [],
    signed: true,
    passes: [16, 64],
  },
};

export const isMethod = (name) => Object.hasOwn(METHODS, name);
export const takes = (method, name) => METHODS[method].takes.includes(name);
export const isOfLabel = (method) => takes(method, "label");
/** Whether there is a label of the model for a method, or one that was typed, which stands in a `prompt`. */
export const isOffered = (method, { prompt }, labels) => !isOfLabel(method) || (prompt ? !METHODS[method].passes : labels.length > 0);
export const isSigned = (method) => METHODS[method].signed === true;

/** Seconds that the passes of a map take by itself on the machine of `model`, the answer of GET /model. */
export function secondsOf(method, { latency, best_batch: { classify: atOnce } }) {
  const passes = METHODS[method].passes?.at(-1) ?? 0;
  const measured = latency.filter(({ graph, batch }) => graph === "classify" && batch <= atOnce);
  const { batch, milliseconds } = measured.at(-1) ?? { batch: 1, milliseconds: 0 };
  return (passes / batch) * (milliseconds / 1000);
}
