// What the page shows, as strings, and the address that restores it. Browsers do not send the fragment of an address
// to the server, so ids of maps stay out of its logs.

import { firstId, idNow } from "./api.js";
import { isIdle } from "./maps.js";
import { isMethod } from "./methods.js";

const DEFAULTS = Object.freeze({
  id: "",
  tab: "", // the first
  method: "", // the one that was judged the most faithful; else evidence, or the class token's without classes
  layer: "", // the default of the method
  head: "mean",
  label: "", // the most likely class
  against: "",
  prompt: "", // of a label that was typed: the text that it stands in
  other: "", // the id of the image that this one is compared with; else the nearest
  overlay: "true",
  fade: "true",
  alpha: "0.8",
  colormap: "", // the default of the server: viridis, or a diverging one for signed maps
  scale: "", // chosen by the page: see maps.js
  interpolation: "bilinear",
  threshold: "",
  beside: "false",
  wipe: "0", // how far the original is drawn over the map
});

const WRITE_AFTER_MS = 150; // browsers limit how often the address may change; a handle changes it often

/** What Back leads from and to: other values have no step of their own in the history. */
const placeOf = ({ id, tab }) => `${tab} ${id}`;

export class State {
  #changes = new EventTarget();
  #tabs;
  #defaults;
  #values;
  #place; // in the history
  #hash = location.hash; // of the address that was read or written last
  #writing;

  /** `method`, its `layer` and the first of `tabs` are shown unless the address says others. */
  constructor({ method, layer, tabs }) {
    this.#tabs = tabs;
    this.#defaults = { ...DEFAULTS, tab: tabs[0], method, layer: layer ?? "" };
    this.#values = this.#read();
    this.#place = placeOf(this.#values);
    addEventListener("hashchange", () => {
      const values = this.#read();
      [this.#place, this.#hash] = [placeOf(values), location.hash];
      this.set(values);
    });
    addEventListener("renew", () => this.#write());
  }

  #read() {
    const given = new URLSearchParams(location.hash.slice(1));
    for (const name of ["id", "other"]) if (given.has(name)) given.set(name, firstId(given.get(name)));
    if (!isMethod(given.get("method"))) given.delete("method"); // a link may be of another version
    if (!this.#tabs.includes(given.get("tab"))) given.delete("tab");
    return Object.fromEntries(Object.entries(this.#defaults).map(([name, value]) => [name, given.get(name) ?? value]));
  }

  get values() {
    return this.#values;
  }

  set(changes) {
    const changed = Object.keys(changes).filter((name) => changes[name] !== this.#values[name]);
    if (!changed.length) return;
    this.#values = { ...this.#values, ...changes };
    clearTimeout(this.#writing);
    this.#writing = setTimeout(() => this.#write(), WRITE_AFTER_MS);
    this.say(...changed);
  }

  /** As `set`, but Back does not lead to what is left. */
  replace(changes) {
    this.#write();
    this.set(changes);
    this.#place = placeOf(this.#values);
  }

  #write() {
    clearTimeout(this.#writing);
    if (location.hash !== this.#hash) return; // Back or Forward has led to another, whose event is to come
    const place = placeOf(this.#values);
    history[place === this.#place ? "replaceState" : "pushState"](null, "", this.link);
    [this.#place, this.#hash] = [place, location.hash];
  }

  /** Call `act(values, changed)`, with the set of names that changed, if it has one of the `names`; without them always. */
  follow(act, names) {
    this.#changes.addEventListener("change", ({ detail }) => {
      if (!names || names.some((name) => detail.has(name))) act(this.#values, detail);
    });
  }

  /** Report changes by their names: of values, and others, such as `added` images. */
  say(...names) {
    this.#changes.dispatchEvent(new CustomEvent("change", { detail: new Set(names) }));
  }

  /** The address of this page, with every value that differs from its default and has an effect. */
  get link() {
    const set = Object.entries(this.#values).filter(([name, value]) => value !== this.#defaults[name] && !isIdle(name, this.#values));
    const now = set.map(([name, value]) => [name, ["id", "other"].includes(name) ? idNow(value) : value]);
    return `${location.origin}${location.pathname}#${new URLSearchParams(now)}`;
  }
}
