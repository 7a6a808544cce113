// A sentence at the bottom of the window, until the next action or for some seconds.

import { byId } from "./element.js";

const SHOWN_MS = 8000;

let ending; // a timer

export function say(sentence) {
  clearTimeout(ending);
  byId("toast").textContent = sentence;
  ending = setTimeout(clear, SHOWN_MS);
  for (const action of ["pointerdown", "keydown"]) addEventListener(action, clear, true);
}

const clear = () => (byId("toast").textContent = "");

export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text); // there is none on a page that came over plain HTTP
    say("Copied.");
  } catch {
    say("The browser blocked copying.");
  }
}
