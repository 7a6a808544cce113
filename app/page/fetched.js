// Links and pictures that a browser asks for by itself, without the API key: with one, the page fetches them.

import { blob } from "./api.js";
import { element } from "./element.js";
import { hasKey } from "./key.js";

export const addressOf = async (picture) => (hasKey() ? URL.createObjectURL(await blob(picture)) : picture);

export function fetchLinks() {
  addEventListener("click", async (event) => {
    const link = event.target.closest("a[href^='/attention/'], a[href^='/model/']");
    if (!link || !hasKey()) return;
    event.preventDefault();
    const address = URL.createObjectURL(await blob(link.href));
    element("a", { href: address, download: link.download }).click();
    URL.revokeObjectURL(address);
  });
}
