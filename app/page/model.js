// The model that the server runs, named at the head of the page.

import { ROOT, json } from "./api.js";
import { byId, element } from "./element.js";

const PROVIDERS = { CPUExecutionProvider: "ONNX Runtime", CUDAExecutionProvider: "CUDA" };
const LONGEST_PAUSE_S = 30;

/** What `GET /model` answers. A server that does not is asked again until it does, and the head of the page says so. */
export async function loadModel() {
  for (let pauseS = 1; ; pauseS = Math.min(2 * pauseS, LONGEST_PAUSE_S)) {
    try {
      const model = await json(`${ROOT}model`);
      name(model);
      return model;
    } catch (problem) {
      const waitS = problem.retryAfter || pauseS;
      byId("served").textContent = `${problem.message} It is asked again in ${waitS} s.`;
      await new Promise((resolve) => setTimeout(resolve, 1000 * waitS));
    }
  }
}

function name({ name, digest, provider, computes_in: computed, manifest: { precision: stored } }) {
  const precision = stored === computed ? stored : `${stored}, computed in ${computed}`;
  document.title = `${name} · vit-serve`;
  byId("served").replaceChildren(
    element("b", {}, name),
    element("code", { title: `Digest ${digest}` }, digest.slice(0, 8)),
    element("span", {}, PROVIDERS[provider] ?? provider),
    element("span", {}, precision),
  );
}
