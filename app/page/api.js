// Requests to the server, with the API key where one is needed. Every failure becomes a Problem with a sentence to show.

import { element } from "./element.js";

/** The path that every address of the service begins with: `/`, or `/vit/` where it stands under that. */
export const ROOT = new URL("../", import.meta.url).pathname;

const KEY = "vit-serve-key"; // in the session storage: the key is kept until the tab is closed

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
  let response = await reach(address, options);
  if (response.status === 401 && promptForKey()) response = await reach(address, options);
  if (response.ok) return response;
  const retryAfter = Number(response.headers.get("Retry-After")) || 0;
  const body = await response.json().catch(() => ({}));
  const message = body.detail ?? `The server returned status ${response.status} without an explanation.`;
  throw new Problem(message, { status: response.status, retryAfter });
}

async function reach(address, options) {
  try {
    return await fetch(address, { ...options, headers: { ...options.headers, ...keyHeader() } });
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

const hasKey = () => sessionStorage.getItem(KEY) !== null;

const keyHeader = () => (hasKey() ? { "X-API-Key": sessionStorage.getItem(KEY) } : {});

/** Whether a key was entered. */
function promptForKey() {
  const key = prompt("This server requires an API key.")?.trim();
  if (key) sessionStorage.setItem(KEY, key);
  return Boolean(key);
}

/** What to set as `src` of an <img>. The browser loads it without the API key, so with a key the page fetches it. */
export const imageSource = async (address) => (hasKey() ? URL.createObjectURL(await blob(address)) : address);

/** The same for links to maps and numbers: with a key, the page fetches and downloads them. */
export function fetchLinks() {
  addEventListener("click", async (event) => {
    const link = event.target.closest(`a[href^='${ROOT}attention/'], a[href^='${ROOT}model/']`);
    if (!link || !hasKey()) return;
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
