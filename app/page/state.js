// What the page shows, as strings, and the address that restores it. Browsers do not send the fragment of an address
// to the server, so ids of maps stay out of its logs.

export const DEFAULTS = Object.freeze({
  id: "",
  method: "class_token",
  layer: "", // the default of the method
  head: "mean",
  label: "", // the most likely class
  against: "",
  overlay: "true",
  alpha: "0.6",
  colormap: "", // the default of the server: viridis, or a diverging one for signed maps
  scale: "min-max",
  interpolation: "bilinear",
  threshold: "",
  colorbar: "false",
  beside: "false",
});

const WRITE_AFTER_MS = 150; // browsers limit how often the address may change; a slider changes often

function read(fragment) {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  return Object.fromEntries(Object.keys(DEFAULTS).map((name) => [name, given.get(name) ?? DEFAULTS[name]]));
}

/** Dispatches `change` with the set of names that changed as its detail. */
export class State extends EventTarget {
  #values = read(location.hash);
  #writing;

  constructor() {
    super();
    addEventListener("hashchange", () => {
      if (new URLSearchParams(location.hash.slice(1)).has("id")) this.set(read(location.hash));
    });
  }

  get values() {
    return this.#values;
  }

  set(changes) {
    const changed = Object.keys(changes).filter((name) => changes[name] !== this.#values[name]);
    if (!changed.length) return;
    this.#values = { ...this.#values, ...changes };
    clearTimeout(this.#writing);
    this.#writing = setTimeout(() => history.replaceState(null, "", this.link), WRITE_AFTER_MS);
    this.#dispatch(changed);
  }

  /** Report every value as changed, so that all parts show what the address says. */
  announce() {
    this.#dispatch(Object.keys(this.#values));
  }

  #dispatch(changed) {
    this.dispatchEvent(new CustomEvent("change", { detail: new Set(changed) }));
  }

  /** The address of this page, with every value that differs from its default. */
  get link() {
    const set = Object.entries(this.#values).filter(([name, value]) => value !== DEFAULTS[name]);
    return `${location.origin}${location.pathname}#${new URLSearchParams(set)}`;
  }
}
