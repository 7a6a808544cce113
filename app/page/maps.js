// Addresses of what the server draws and counts, from what is on show.

const CHOICE = {
  class_token: ["layer", "head"],
  rollout: [],
  evidence: ["layer", "label", "against"],
};
const STYLE = ["overlay", "alpha", "colormap", "interpolation", "scale", "colorbar", "threshold"];

function address(path, values, names, extra = {}) {
  const set = names.filter((name) => values[name] !== "").map((name) => [name, values[name]]);
  return `/attention/${encodeURIComponent(values.id)}${path}?${new URLSearchParams([...set, ...Object.entries(extra)])}`;
}

/** The map on show as png, json or npy. The numbers do not depend on how they are drawn. */
export function mapAddress(values, format) {
  const names = ["method", ...CHOICE[values.method], ...(format === "png" ? STYLE : [])];
  return address("", values, names, { format });
}

/** The picture alone, darker where the network did not see it. */
export const originalAddress = (values) => address("", values, [], { alpha: 0, format: "png" });

/** The evidence whose receipt adds up to a class's logit, or to the difference of two. */
export const receiptAddress = (values) =>
  address("", values, ["label", "against"], { method: "evidence", format: "json" });

export const wallAddress = (values, format) =>
  address("/wall", values, format === "png" ? ["colormap", "interpolation"] : [], { scale: "percentile", format });

export const reportAddress = (values) => address("/report", values, ["label"]);

export const verifyAddress = (values) => address("/verify", values, ["method", ...CHOICE[values.method]]);
