// The API key. It is asked for in the page, and kept until the tab is closed.

import { byId } from "./element.js";

const KEY = "vit-serve-key";
const UNKNOWN = "The server does not know this key. Try again. Of name=KEY, enter only what stands after the first =.";
export const UNREACHED = "The server cannot be reached. Check the connection and try again.";

let entered = null; // the key, where the browser keeps no data of a site
let asking; // a promise while the page asks for a key

/** Null if none was entered. */
export function storedKey() {
  try {
    return sessionStorage.getItem(KEY) ?? entered;
  } catch {
    return entered;
  }
}

function store(key) {
  entered = key;
  try {
    sessionStorage.setItem(KEY, key);
  } catch {} // it is asked for again when the page is loaded
}

export const keyHeader = (key) => (key === null ? {} : { "X-API-Key": key });

/** Ask until there is a key that the server knows. `refused`: the one that it does not know, or null. */
export async function askForKey(refused) {
  if (storedKey() !== refused) return; // another one was entered in the meantime
  asking ??= new Promise((resolve) => {
    const [form, field] = [byId("key"), byId("key-field")];
    form.hidden = false;
    say(refused === null ? "" : UNKNOWN);
    field.focus();
    form.onsubmit = async (event) => {
      event.preventDefault();
      const key = field.value.trim();
      const trouble = await troubleWith(key);
      say(trouble);
      if (trouble) return;
      store(key);
      form.hidden = true;
      form.reset();
      asking = undefined;
      resolve();
    };
  });
  await asking;
}

/** Lead to the field of the key, if there is none that the server knows. */
export function remindOfKey() {
  if (asking) byId("key-field").focus();
}

/** Why this key is of no use. Empty if the server knows it. */
async function troubleWith(key) {
  if (!/^[!-~]+$/.test(key)) return UNKNOWN; // a header takes no other characters
  try {
    const { status } = await fetch(new URL("../model", import.meta.url), { headers: keyHeader(key) });
    return status === 401 ? UNKNOWN : "";
  } catch {
    return UNREACHED;
  }
}

function say(sentence) {
  byId("key-said").textContent = sentence;
}
