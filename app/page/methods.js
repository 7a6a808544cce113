// The methods of a map, in the order of the page. Everything else on the page reads this list.
//
// `title` and `meaning` are for people, `takes` are the parameters that change the map, and `layers` are the layers that
// have a name. Evidence, positive or not, is for one label; attention is the same for all.

const LABEL = ["layer", "label", "against"];

export const METHODS = {
  evidence: {
    title: "Evidence",
    meaning: "What each patch adds to a label's logit (red) or takes from it (blue): its exact direct effect.",
    takes: LABEL,
    layers: ["sum", "mean"],
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
};

export const isMethod = (name) => Object.hasOwn(METHODS, name);
export const takes = (method, name) => METHODS[method].takes.includes(name);
export const isOfLabel = (method) => takes(method, "label");
