// Other models behind the same address, from the list that a balancer gives above the path of this one; and the files that
// go along to them.

import { ROOT } from "./api.js";
import { keyHeader, storedKey } from "./key.js";

const HANDED = "vit-serve-handed"; // to the page that this tab opens next

/** The models at `address`, as /: [{name, address, model: the answer of GET /model}]. Those that answer. */
export async function modelsAt(address) {
  const answer = await fetch(address, { headers: { Accept: "application/json, text/plain" } }).catch(() => undefined);
  const type = answer?.ok ? answer.headers.get("Content-Type") : "";
  if (!/^(application\/json|text\/plain)/.test(type)) return [];
  const text = await answer.text();
  const names = type.startsWith("text") ? text.split(/\s+/).filter(Boolean) : JSON.parse(text).map(({ name }) => name);
  const found = names.map(async (name) => {
    const one = { name, address: `${address}${name}/` };
    const model = await fetch(`${one.address}model`, { headers: keyHeader(storedKey()) }).catch(() => undefined);
    return { ...one, model: model?.ok ? await model.json() : undefined };
  });
  return (await Promise.all(found)).filter(({ model }) => model);
}

/** The models beside this one, with it; none where it stands alone. */
export const siblings = async () => (ROOT === "/" ? [] : modelsAt(ROOT.replace(/[^/]+\/$/, "")));

/** Open the page of another model with the same files. */
export async function visit(address, files) {
  try {
    await inStore((store) => store.put(files, HANDED));
    sessionStorage.setItem(HANDED, address);
  } catch {} // a browser that keeps no data: the page opens without them
  location.href = address;
}

/** The files that the page before has handed over, once. */
export async function handed() {
  try {
    if (sessionStorage.getItem(HANDED) !== ROOT) return [];
    sessionStorage.removeItem(HANDED);
    return (await inStore((store) => store.get(HANDED))) ?? [];
  } catch {
    return [];
  }
}

const done = (asked) =>
  new Promise((give, fail) => Object.assign(asked, { onsuccess: () => give(asked.result), onerror: fail }));

async function inStore(act) {
  const opening = indexedDB.open(HANDED, 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore(HANDED);
  const data = await done(opening);
  return done(act(data.transaction(HANDED, "readwrite").objectStore(HANDED)));
}
