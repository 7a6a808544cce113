// Embeddings of images: one to take away, and which of several are near each other.

import { array, idNow, imageOf } from "./api.js";
import { byId } from "./element.js";
import { kept } from "./kept.js";
import { partAddress } from "./maps.js";
import { significant } from "./numbers.js";
import { showPart } from "./part.js";
import { copyText } from "./toast.js";
import { dot } from "./tokens.js";

const SHOWN = 5; // numbers
const KEPT = 1000; // images

/** The embedding of each image, a Float32Array. */
const embeddings = kept(KEPT, async (id) => {
  const { embedding } = imageOf(id)?.result ?? {}; // of a model without a head
  return embedding ? Float32Array.from(embedding) : (await array(partAddress(id, "embedding"))).data;
});

/** Images by the cosine of their embeddings with that of `id`, the nearest first: [{id, name, source, cosine}]. */
export async function nearest(id, images) {
  const own = await embeddings.get(id);
  const others = images.filter((image) => image.id !== id);
  const found = others.map(async ({ id, name, source }) => ({ id, name, source, cosine: cosine(own, await embeddings.get(id)) }));
  return (await Promise.all(found)).sort((a, b) => b.cosine - a.cosine);
}

const cosine = (one, other) => dot(one, other) / (Math.sqrt(dot(one, one) * dot(other, other)) || 1);

export function showEmbedding(state) {
  let text = "[]";
  byId("copy-embedding").addEventListener("click", () => copyText(text));
  showPart(state, "embedding-part", {
    names: ["id"],
    load: ({ id }) => embeddings.get(id),
    show: (numbers, { id }) => {
      text = JSON.stringify([...numbers]);
      Object.assign(byId("take-embedding"), { href: partAddress(idNow(id), "embedding"), download: `embedding-${id.slice(0, 6)}.npy` });
      const first = [...numbers.subarray(0, SHOWN)].map((number) => significant(number));
      return `${numbers.length} numbers: ${first.join(", ")}, …`;
    },
  });
}
