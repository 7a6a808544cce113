// What is on show, as strings, and the address that restores it. The fragment is never sent to a server, so ids of maps
// stay out of its logs.

export const DEFAULTS = Object.freeze({
  id: "",
  method: "class_token",
  layer: "", // the method's own default
  head: "mean",
  label: "", // the most likely class
  against: "",
  overlay: "true",
  alpha: "0.6",
  colormap: "", // the server's: viridis, or a diverging one where the map is signed
  scale: "min-max",
  interpolation: "bilinear",
  threshold: "",
  colorbar: "false",
  beside: "false",
});

const WRITE_AFTER_MS = 150; // a browser allows few changes of the address a second; a slider makes many

function read(fragment) {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  return Object.fromEntries(Object.keys(DEFAULTS).map((name) => [name, given.get(name) ?? DEFAULTS[name]]));
}

/** Dispatches `change`, whose detail is the set of names that changed. */
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
    this.#tell(changed);
  }

  /** Have everything shown that the address said. */
  announce() {
    this.#tell(Object.keys(this.#values));
  }

  #tell(changed) {
    this.dispatchEvent(new CustomEvent("change", { detail: new Set(changed) }));
  }

  /** The address of this page with everything that differs from the defaults. */
  get link() {
    const set = Object.entries(this.#values).filter(([name, value]) => value !== DEFAULTS[name]);
    return `${location.origin}${location.pathname}#${new URLSearchParams(set)}`;
  }
}
