// Files from a drop, the clipboard or the file dialog. Each is sent to the model and shown with its result.

import { send } from "./api.js";
import { acceptDrops } from "./drop.js";
import { breakable, byId, element } from "./element.js";
import { remindOfKey } from "./key.js";
import { patient } from "./latest.js";
import { percent } from "./numbers.js";
import { Refusals } from "./refusals.js";

const AT_ONCE = 4; // requests; the server puts them in one batch
const TOAST_MS = 8000;
const MARGIN = 40; // pixels of the strip beside the chosen image
const NO_FILE = "This is an address or text, and the page takes image files. Save the image, then add its file.";

/** Dispatches `choose` with a result: of the first of the files just added that can be used, or the one that is clicked;
 * before that `begin` with the files, `add` when one has a result, and `end` if none can be used.
 */
export class Queue extends EventTarget {
  #waiting = [];
  #running = 0;
  #fresh = []; // the files added last that are not refused, until the first of them has a result
  #list = byId("queue");
  #refusals = new Refusals(byId("refusals"));
  #saying; // the timer that ends it
  #classes;
  #named = new Map(); // the items that have a result, by its id

  /** `classes` of the model, once they are known. Until then files wait. */
  constructor(classes) {
    super();
    this.#classes = classes;
    const file = byId("file");
    file.addEventListener("change", () => {
      this.add(file.files);
      file.value = "";
    });
    addEventListener("paste", ({ clipboardData, target }) => {
      if (!target.closest("input, textarea")) this.#take(clipboardData.files);
    });
    byId("again").addEventListener("click", () => file.click());
    acceptDrops((files) => this.#take(files));
    for (const action of ["pointerdown", "keydown"]) addEventListener(action, () => this.say(""), true);
  }

  add(files) {
    if (!files.length) return;
    remindOfKey();
    this.#fresh = [];
    this.#dispatch("begin", files);
    for (const file of files) {
      const item = new Item(file, {
        classes: this.#classes,
        refusals: this.#refusals,
        choose: (result) => this.#dispatch("choose", result),
        retry: () => {
          this.#fresh.push(item);
          this.#enqueue(item);
        },
      });
      this.#fresh.push(item);
      this.#enqueue(item);
    }
  }

  /** Files of a drop or paste, or the answer to one without files. */
  #take(files) {
    this.say(files.length ? "" : NO_FILE);
    this.add(files);
  }

  /** A sentence at the bottom of the window, until the next action or for some seconds. */
  say(sentence) {
    clearTimeout(this.#saying);
    byId("toast").textContent = sentence;
    this.#saying = setTimeout(() => (byId("toast").textContent = ""), TOAST_MS);
  }

  /** Outline the image with this id, and scroll to it along the strip. */
  mark(id) {
    for (const node of this.#list.children) node.classList.toggle("chosen", node.dataset.id === id && id !== "");
    this.#list.scrollLeft = (this.#list.querySelector(".chosen")?.offsetLeft ?? 0) - MARGIN;
  }

  /** The `name` of the file with this id, and its `result`. Undefined if it was not added here. */
  find(id) {
    return this.#named.get(id);
  }

  /** All that have a result, in the order in which they were added: [{id, name, file, source, result}]. */
  get images() {
    return [...this.#named.values()].sort((a, b) => a.node.place - b.node.place);
  }

  #enqueue(item) {
    this.#list.append(item.node);
    this.#waiting.push(item);
    this.#next();
  }

  async #next() {
    if (this.#running >= AT_ONCE || !this.#waiting.length) return;
    const item = this.#waiting.shift();
    this.#running += 1;
    const result = await item.send();
    this.#running -= 1;
    if (result) this.#named.set(result.id, item);
    if (result) this.#dispatch("add");
    this.#settle(item, result);
    this.#next();
  }

  /** Choose the first of the files just added as soon as it has a result, and all before it are refused. */
  #settle(item, result) {
    if (!this.#fresh.includes(item)) return;
    if (!result) this.#fresh.splice(this.#fresh.indexOf(item), 1);
    const [first] = this.#fresh;
    if (first && !this.#named.has(first.result?.id)) return;
    this.#fresh = [];
    this.#dispatch(first ? "choose" : "end", first?.result);
  }

  #dispatch(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

/** One file: waiting, working, named or refused. */
class Item {
  static #count = 0;
  #file;
  #classes;
  #refusals;
  #status;
  #button;
  #retry;
  node;

  constructor(file, { classes, refusals, choose, retry }) {
    this.#classes = classes;
    this.#refusals = refusals;
    this.#file = file;
    this.#retry = retry;
    this.#status = element("span", { class: "status" }, "waiting");
    this.source = URL.createObjectURL(file);
    const image = element("img", { src: this.source, alt: "" });
    image.addEventListener("error", () => image.classList.add("unseen")); // a format that this browser cannot draw
    this.#button = element("button", { type: "button", disabled: true, title: file.name }, image, this.#status);
    this.#button.addEventListener("click", () => choose(this.result));
    this.node = element("li", { class: "waiting" }, this.#button);
    this.node.place = Item.#count++; // among all files that were added
  }

  get name() {
    return this.#file.name;
  }

  get file() {
    return this.#file;
  }

  get id() {
    return this.result.id;
  }

  async send() {
    const classes = await this.#classes;
    this.node.className = "working";
    this.#button.append(this.#status);
    this.#show("…");
    try {
      this.result = await patient(() => send(this.#file, classes));
    } catch (problem) {
      this.#refuse(problem);
      return undefined;
    }
    const { predictions: [best] = [] } = this.result;
    this.node.className = "named";
    const label = best && [element("b", {}, breakable(classes.name(best.index))), percent(best.score)];
    this.#show(...(label ?? []), element("small", {}, this.name));
    if (!this.result.id) {
      this.#status.append(". The server could not keep its maps.");
      return undefined;
    }
    this.node.dataset.id = this.result.id;
    this.#button.disabled = false;
    return this.result;
  }

  #refuse(problem) {
    this.result = undefined;
    this.node.className = "refused";
    const again = element(
      "button",
      {
        type: "button",
        class: "link",
        disabled: problem.retryAfter > 0,
        onclick: () => {
          more.remove();
          this.#refusals.remove(this.node);
          this.#retry();
        },
      },
      "Try again",
    );
    setTimeout(() => (again.disabled = false), 1000 * problem.retryAfter);
    const more = element("span", { class: "more" }, problem.temporary ? again : null);
    this.#show(element("b", {}, this.name), ` ${problem.message}`);
    this.node.append(this.#status, more); // the sentence must not be inside the button
    this.#refusals.add(this.node);
  }

  #show(...what) {
    this.#status.replaceChildren(...what);
  }
}
