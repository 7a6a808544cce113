// Requests to the server, with the API key where one is needed. An image that the server has forgotten is sent again.
// Every failure becomes a Problem with a sentence to show, and so does the answer of another model.

import { element } from "./element.js";
import { UNREACHED, askForKey, keyHeader, storedKey } from "./key.js";
import { readNpy } from "./npy.js";

/** The path that every address of the service begins with: `/`, or `/vit/` where it stands under that. */
export const ROOT = new URL("../", import.meta.url).pathname;

const UNREADABLE = "This file cannot be read: it is a folder, or was moved, changed or deleted. Add it again.";
const OTHER_MODEL = "The server answered with another model than before. Try again, or load this page again.";
const KEPT_MS = 40_000; // Safari reads what a link leads to long after the click
const SAME = 0.05; // more than a batch, or another processor, changes a score of one image

const sent = new Map(); // the images of this tab, by all ids that they have had: {file, path, result, id: the last one}

let model; // the digest of the one that gave the first answer

export class Problem extends Error {
  constructor(message, { status = 0, retryAfter = 0 } = {}) {
    super(message);
    this.status = status; // 0: there is no answer, or none that can be used
    this.retryAfter = retryAfter; // seconds
  }

  /** Whether the same request may succeed later. */
  get temporary() {
    return [0, 408, 429].includes(this.status) || this.status >= 500;
  }
}

/** The response, if it is a success. Throws Problem, or AbortError when `signal` is aborted. */
async function request(address, options = {}) {
  const id = address.split(`${ROOT}attention/`)[1]?.split(/[/?]/)[0];
  const image = sent.get(id);
  if (!image) return attempt(address, options);
  const used = image.id; // it changes while others wait
  try {
    return await attempt(address.replace(id, used), options);
  } catch (problem) {
    if (problem.status !== 404) throw problem;
    if (image.id === used) await (image.renewing ??= renew(image).finally(() => (image.renewing = undefined)));
    return attempt(address.replace(id, image.id), options);
  }
}

async function attempt(address, options) {
  let key = storedKey();
  let response = await reach(address, options, key);
  while (response.status === 401) {
    await askForKey(key);
    key = storedKey();
    response = await reach(address, options, key);
  }
  if (isOfOther(response) && !options.method) response = await reach(address, { ...options, cache: "reload" }, key);
  if (isOfOther(response)) throw new Problem(OTHER_MODEL);
  if (response.ok) return response;
  const retryAfter = Number(response.headers.get("Retry-After")) || 0;
  const body = await response.json().catch(() => ({}));
  const message = body.detail ?? `The server returned status ${response.status} without an explanation.`;
  throw new Problem(message, { status: response.status, retryAfter });
}

/** Whether it is a good answer of another model than the first one was. The browser may have kept it for an hour. */
function isOfOther({ ok, headers, url }) {
  const digest = headers.get("X-Model-Digest"); // a proxy may take it away
  return ok && new URL(url).pathname.startsWith(ROOT) && digest !== null && digest !== (model ??= digest);
}

const reach = (address, options, key) =>
  whole(fetch(address, { ...options, headers: { ...options.headers, ...keyHeader(key) } }));

/** What was promised by the network, which may break off at any time. */
async function whole(promised) {
  try {
    return await promised;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(UNREACHED);
  }
}

export const json = async (address, options) => whole((await request(address, options)).json());

/** An array, which comes as a file of NumPy. */
export const array = async (address, options = {}) => {
  const answer = await request(address, { ...options, headers: { Accept: "application/x-npy" } });
  return readNpy(await whole(answer.arrayBuffer()));
};

export const blob = async (address, options) => whole((await request(address, options)).blob());

/** Labels and id of one image file; its embedding and id from a model that has no `classes`. */
export async function send(file, classes) {
  const image = { file, path: classes.count ? "classify" : "embed?attention=true" };
  const result = await post(image);
  const { id } = result;
  if (id) sent.set(id, { ...image, result, id });
  return result;
}

async function post({ file, path }) {
  const reader = file.stream().getReader();
  await reader.read().catch(unreadable); // fetch would fail as if there were no server
  reader.cancel();
  const headers = { "Content-Type": "application/octet-stream" };
  const { results } = await json(ROOT + path, { method: "POST", body: file, headers });
  return results[0];
}

function unreadable() {
  throw new Problem(UNREADABLE, { status: 404 });
}

/** Give the image a new id, by which the server knows it for another while. */
async function renew(image) {
  const result = await post(image);
  const { id } = result;
  if (!isSame(result, image.result)) unreadable(); // some browsers send a file that has changed
  if (!id) throw new Problem("The server could not keep the maps of this image.");
  sent.set(id, image);
  image.id = id;
  dispatchEvent(new Event("renew"));
}

/** Whether two answers are of one image, or of two that have the same labels. The last of the labels may be others. */
function isSame(one, other) {
  if (JSON.stringify(one.image) !== JSON.stringify(other.image)) return false;
  const predictions = other.predictions ?? []; // none without a head
  const scores = new Map(predictions.map(({ index, score }) => [index, score]));
  const scoreOf = (index) => scores.get(index) ?? predictions.at(-1).score;
  return (one.predictions ?? []).every(({ index, score }) => Math.abs(score - scoreOf(index)) < SAME);
}

/** The id by which the server knows an image now; the page goes on calling it by its first one. */
export const idNow = (id) => sent.get(id)?.id ?? id;

/** The `file` of an image that was sent from this page, and the `result`. */
export const sentAs = (id) => sent.get(id) ?? {};

/** The other way round: the first id, of any. */
export const firstId = (id) => sent.get(id)?.result.id ?? id;

/** What to set as `src` of an <img>. The browser loads it without the API key, so with a key the page fetches it. */
export const imageSource = async (address) => (storedKey() ? URL.createObjectURL(await blob(address)) : address);

/** The same for links to numbers of the model, with a key, and to maps, whose image may have to be sent again. */
export function fetchLinks() {
  addEventListener("click", async (event) => {
    const link = event.target.closest(`a[href^='${ROOT}attention/'], a[href^='${ROOT}model/']`);
    if (!link || !(storedKey() || link.pathname.startsWith(`${ROOT}attention/`))) return;
    event.preventDefault();
    try {
      const address = URL.createObjectURL(await blob(link.href));
      element("a", { href: address, download: link.download }).click();
      setTimeout(() => URL.revokeObjectURL(address), KEPT_MS);
    } catch (problem) {
      alert(problem.message); // such as maps that have expired
    }
  });
}
