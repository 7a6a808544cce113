// Requests to the server, with the API key where one is needed. An image that the server has forgotten is sent again.
// Every failure becomes a Problem with a sentence to show, and so does the answer of another model.

import { element } from "./element.js";
import { askForKey, keyHeader, storedKey } from "./key.js";
import { readNpy } from "./npy.js";

/** The path that every address of the service begins with: `/`, or `/vit/` where it stands under that. */
export const ROOT = new URL("../", import.meta.url).pathname;

const UNREACHED = "The server cannot be reached.";
const UNREACHED_S = 2; // until it is asked again
const UNREADABLE = "This file cannot be read: it is a folder, or was moved, changed or deleted. Add it again.";
const OTHER_MODEL = "The server answered with another model than before. Try again, or load this page again.";
const KEPT_MS = 40_000; // Safari reads what a link leads to long after the click
const SAME = 0.05; // more than a batch, or another processor, changes a score of one image

const sent = new Map(); // the images of this tab, by all ids that they have had

let model; // the digest of the one that gave the first answer

class Problem extends Error {
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
  const used = image.now; // it changes while others wait
  try {
    return await attempt(address.replace(id, used), options);
  } catch (problem) {
    if (problem.status !== 404) throw problem;
    if (image.now === used) await (image.renewing ??= renew(image).finally(() => (image.renewing = undefined)));
    return attempt(address.replace(id, image.now), options);
  }
}

async function attempt(address, options) {
  let key = storedKey();
  let response = await reach(address, options, key);
  while (response.status === 401) {
    key = await askForKey(key);
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
    throw new Problem(UNREACHED, { retryAfter: UNREACHED_S });
  }
}

export const json = async (address, options) => whole((await request(address, options)).json());

/** An array, which comes as a file of NumPy. */
export const array = async (address, options = {}) => {
  const answer = await request(address, { ...options, headers: { Accept: "application/x-npy" } });
  return readNpy(await whole(answer.arrayBuffer()));
};

export const blob = async (address, options) => whole((await request(address, options)).blob());

/** The path that tells what a model with or without `labels` says of an image. */
export const pathFor = (labels) => (labels.length ? "classify" : "embed?attention=true");

/** What the model at an address says of an image file. */
export async function ask(address, file, signal) {
  const headers = { "Content-Type": "application/octet-stream" };
  const { results } = await json(address, { method: "POST", body: file, headers, signal });
  return results[0];
}

/** Ask about an image, {file, path}. It gets the `result`, and where the server keeps it its `id` and the id that it has
 * `now`.
 */
export async function send(image) {
  image.result = await post(image);
  image.id = image.now = image.result.id;
  if (image.id) sent.set(image.id, image);
}

async function post({ file, path }) {
  const reader = file.stream().getReader();
  await reader.read().catch(unreadable); // fetch would fail as if there were no server
  reader.cancel();
  return ask(ROOT + path, file);
}

function unreadable() {
  throw new Problem(UNREADABLE, { status: 404 });
}

/** Give the image a new id, by which the server knows it for another while. */
async function renew(image) {
  const result = await post(image);
  if (!isSame(result, image.result)) unreadable(); // some browsers send a file that has changed
  if (!result.id) throw new Problem("The server could not keep the maps of this image.");
  sent.set(result.id, image);
  image.now = result.id;
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

/** The image with this id, if it was added in this tab: {id, name, file, source, result}. */
export const imageOf = (id) => sent.get(id);

/** All of them, in the order in which they were added. */
export const images = () => [...new Set(sent.values())].sort((one, other) => one.place - other.place);

/** The id by which the server knows an image now; the page goes on calling it by its first one. */
export const idNow = (id) => sent.get(id)?.now ?? id;

/** The other way round: the first id, of any. */
export const firstId = (id) => sent.get(id)?.id ?? id;

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
