// The API key, where the server wants one. It is kept for as long as the tab is open.

const NAME = "vit-serve-key";

export const hasKey = () => sessionStorage.getItem(NAME) !== null;

export const keyHeader = () => (hasKey() ? { "X-API-Key": sessionStorage.getItem(NAME) } : {});

/** Whether there is a key to try now. */
export function askForKey() {
  const key = prompt("This server wants an API key.")?.trim();
  if (key) sessionStorage.setItem(NAME, key);
  return Boolean(key);
}
