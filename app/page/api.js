// Requests to the server, with the API key where one is needed. An image that the server has forgotten is sent again.
// Every failure becomes a Problem with a sentence to show.

import { element } from "./element.js";
import { UNREACHED, askForKey, keyHeader, storedKey } from "./key.js";

/** The path that every address of the service begins with: `/`, or `/vit/` where it stands under that. */
export const ROOT = new URL("../", import.meta.url).pathname;

const sent = new Map(); // the images of this tab, by all ids that they have had: {file, path, first: id, id: the last one}

export class Problem extends Error {
  constructor(message, { status = 0, retryAfter = 0 } = {}) {
    super(message);
    this.status = status; // 0: the server was not reached
    this.retryAfter = retryAfter; // seconds
  }

  /** Whether the same request may succeed later. */
  get temporary() {
    return this.status === 0 || this.status >= 500;
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
  if (response.ok) return response;
  const retryAfter = Number(response.headers.get("Retry-After")) || 0;
  const body = await response.json().catch(() => ({}));
  const message = body.detail ?? `The server returned status ${response.status} without an explanation.`;
  throw new Problem(message, { status: response.status, retryAfter });
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

export const blob = async (address, options) => whole((await request(address, options)).blob());

/** Labels and id of one image file; its embedding and id from a model that has no `classes`. */
export async function send(file, classes) {
  const image = { file, path: classes.count ? "classify" : "embed?attention=true" };
  const result = await post(image);
  const { id } = result;
  if (id) sent.set(id, { ...image, first: id, id });
  return result;
}

async function post({ file, path }) {
  const headers = { "Content-Type": "application/octet-stream" };
  const { results } = await json(ROOT + path, { method: "POST", body: file, headers });
  return results[0];
}

/** Give the image a new id, by which the server knows it for another while. */
async function renew(image) {
  const { id } = await post(image);
  if (!id) throw new Problem("The server could not keep the maps of this image.");
  sent.set(id, image);
  image.id = id;
  dispatchEvent(new Event("renew"));
}

/** The id by which the server knows an image now; the page goes on calling it by its first one. */
export const idNow = (id) => sent.get(id)?.id ?? id;

/** The other way round: the first id, of any. */
export const firstId = (id) => sent.get(id)?.first ?? id;

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
      URL.revokeObjectURL(address);
    } catch (problem) {
      alert(problem.message); // such as maps that have expired
    }
  });
}
