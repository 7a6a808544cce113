// Asks the server. Whatever goes wrong becomes a Problem whose message is a sentence for a person.

import { askForKey, keyHeader } from "./key.js";

export class Problem extends Error {
  constructor(message, { status = 0, retryAfter = 0 } = {}) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter; // seconds
  }

  /** Whether the same request may well succeed later. */
  get passing() {
    return this.status === 0 || this.status >= 500;
  }
}

/** The response, if it is a success. Throws Problem, or AbortError when `signal` says so. */
export async function ask(address, options = {}) {
  let response = await reach(address, options);
  if (response.status === 401 && askForKey()) response = await reach(address, options);
  if (response.ok) return response;
  const retryAfter = Number(response.headers.get("Retry-After")) || 0;
  const told = await response.json().catch(() => ({}));
  const message = told.detail ?? `The server answered with status ${response.status} and no explanation.`;
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

export const json = async (address, options) => (await ask(address, options)).json();

export const blob = async (address, options) => (await ask(address, options)).blob();

/** Labels and id of one picture. */
export async function classify(file) {
  const answer = await json("/classify", {
    method: "POST",
    body: file,
    headers: { "Content-Type": "application/octet-stream" },
  });
  return answer.results[0];
}
