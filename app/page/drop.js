// Files that are dropped anywhere on the page, with those of folders, in their order.

import { byId } from "./element.js";

/** `take` is called with the files of each drop. */
export function acceptDrops(take) {
  let inside = 0; // dragenter and dragleave fire for every element under the pointer
  const veil = (shown) => byId("veil").classList.toggle("shown", shown);
  const files = (event) => event.dataTransfer?.types.includes("Files");
  addEventListener("dragenter", (event) => files(event) && veil(++inside > 0));
  addEventListener("dragleave", (event) => files(event) && veil(--inside > 0));
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", async (event) => {
    event.preventDefault(); // the browser would open a link
    veil((inside = 0) > 0);
    const { items, files } = event.dataTransfer;
    const entries = [...items].map((item) => item.webkitGetAsEntry?.()); // now: the list is empty after an await
    take(entries.some((entry) => entry?.isDirectory) ? (await Promise.all(entries.map(filesIn))).flat() : [...files]);
  });
}

async function filesIn(entry) {
  if (!entry?.isDirectory) return [await new Promise((give, fail) => entry.file(give, fail))];
  const reader = entry.createReader();
  const read = () => new Promise((give, fail) => reader.readEntries(give, fail)); // some of them at a time
  const found = [];
  for (let some = await read(); some.length; some = await read()) found.push(...some);
  found.sort((one, other) => one.name.localeCompare(other.name, "en", { numeric: true }));
  return (await Promise.all(found.filter(({ name }) => !name.startsWith(".")).map(filesIn))).flat();
}
