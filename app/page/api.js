// Requests to the server, with the API key where one is needed. Every failure becomes a Problem with a sentence to show.

import { element } from "./element.js";
import { askForKey, keyHeader, storedKey } from "./key.js";

/** The path that every address of the service begins with: `/`, or `/vit/` where it stands under that. */
export const ROOT = new URL("../", import.meta.url).pathname;

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

async function reach(address, options, key) {
  try {
    return await fetch(address, { ...options, headers: { ...options.headers, ...keyHeader(key) } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("The server cannot be reached. Check the connection and try again.");
  }
}

export const json = async (address, options) => (await request(address, options)).json();

export const blob = async (address, options) => (await request(address, options)).blob();

/** Labels and id of one image file; its embedding and id from a model without classes. */
export async function send(file, { labels }) {
  const answer = await json(ROOT + (labels.length ? "classify" : "embed?attention=true"), {
    method: "POST",
    body: file,
    headers: { "Content-Type": "application/octet-stream" },
  });
  return answer.results[0];
}

/** What to set as `src` of an <img>. The browser loads it without the API key, so with a key the page fetches it. */
export const imageSource = async (address) => (storedKey() ? URL.createObjectURL(await blob(address)) : address);

/** The same for links to maps and numbers: with a key, the page fetches and downloads them. */
export function fetchLinks() {
  addEventListener("click", async (event) => {
    const link = event.target.closest(`a[href^='${ROOT}attention/'], a[href^='${ROOT}model/']`);
    if (!link || !storedKey()) return;
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
