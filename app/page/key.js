// The API key. It is asked for in the page, and kept until the tab is closed.

import { byId } from "./element.js";

const KEY = "vit-serve-key";
const UNKNOWN = "The server does not know this key. Try again. Of name=KEY, enter only what stands after the first =.";

let entered = null; // the key, where the browser keeps no data of a site
let asking; // a promise while the page asks for a key

function kept(act) {
  try {
    return act(sessionStorage);
  } catch {
    return null; // it is asked for again when the page is loaded
  }
}

/** Null if none was entered. */
export const storedKey = () => kept((store) => store.getItem(KEY)) ?? entered;

export const keyHeader = (key) => (key === null ? {} : { "X-API-Key": key });

/** Another key than the one that the server `refused`, or than none: null. */
export async function askForKey(refused) {
  if (storedKey() === refused) await (asking ??= ask(refused === null ? "" : UNKNOWN)); // or it was entered in the meantime
  return storedKey();
}

async function ask(sentence) {
  const [form, field] = [byId("key"), byId("key-field")];
  form.hidden = false;
  byId("key-said").textContent = sentence;
  field.focus();
  field.select(); // of a key that was refused, so that it can be mended
  const key = await new Promise((resolve) => {
    form.onsubmit = (event) => {
      event.preventDefault();
      const key = field.value.trim();
      if (/^[!-~]+$/.test(key)) resolve(key);
      else byId("key-said").textContent = UNKNOWN; // a header takes no other characters
    };
  });
  entered = key;
  kept((store) => store.setItem(KEY, key));
  form.hidden = true;
  asking = undefined;
}

/** Lead to the field of the key, if there is none that the server knows. */
export function remindOfKey() {
  if (asking) byId("key-field").focus();
}
