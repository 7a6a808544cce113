// Files from a drop, the clipboard or the file dialog. Each is sent to the model and shown with its result.

import { pathFor, send } from "./api.js";
import { acceptDrops } from "./drop.js";
import { breakable, byId, element } from "./element.js";
import { remindOfKey } from "./key.js";
import { patient } from "./latest.js";
import { percent } from "./numbers.js";
import { atMost } from "./pool.js";
import { Refusals } from "./refusals.js";

const AT_ONCE = 4; // requests; the server puts them in one batch
const TOAST_MS = 8000;
const MARGIN = 40; // pixels of the strip beside the chosen image
const NO_FILE = "This is an address or text, and the page takes image files. Save the image, then add its file.";

/** Dispatches `choose` with an image: the first of the files just added that can be used, or the one that is clicked;
 * before that `begin` with the files, `add` when one has a result, and `end` if none can be used.
 */
export class Queue extends EventTarget {
  #sending = atMost(AT_ONCE);
  #fresh = []; // the images added last that are not refused, until the first of them has a result
  #count = 0; // of all that were added
  #list = byId("queue");
  #refusals = new Refusals(byId("refusals"));
  #saying; // the timer that ends it
  #classes;

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
    for (const file of files) this.#enqueue(this.#imageOf(file));
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

  /** An image and its place in the list. */
  #imageOf(file) {
    const image = { file, name: file.name, source: URL.createObjectURL(file), place: this.#count++ };
    const picture = element("img", { src: image.source, alt: "" });
    picture.addEventListener("error", () => picture.classList.add("unseen")); // a format that this browser cannot draw
    const choose = () => this.#dispatch("choose", image);
    image.status = element("span", { class: "status" }, "waiting");
    image.button = element("button", { type: "button", disabled: true, title: file.name, onclick: choose }, picture);
    image.node = Object.assign(element("li", { class: "waiting" }, image.button), { place: image.place });
    return image;
  }

  async #enqueue(image) {
    this.#fresh.push(image);
    image.button.append(image.status);
    this.#list.append(image.node);
    await this.#sending(() => this.#send(image));
    if (image.id) this.#dispatch("add");
    this.#settle(image);
  }

  async #send(image) {
    const { node, status, button } = image;
    const classes = await this.#classes;
    image.path = pathFor(classes.labels);
    node.className = "working";
    status.replaceChildren("…");
    try {
      await patient(() => send(image));
    } catch (problem) {
      this.#refuse(image, problem);
      return;
    }
    const { predictions: [best] = [] } = image.result;
    node.className = "named";
    const label = best && [element("b", {}, breakable(classes.name(best.index))), percent(best.score)];
    status.replaceChildren(...(label ?? []), element("small", {}, image.name));
    if (!image.id) status.append(". The server could not keep its maps.");
    else node.dataset.id = image.id;
    button.disabled = !image.id;
  }

  #refuse(image, problem) {
    const { node, status } = image;
    const retry = () => {
      more.remove();
      this.#refusals.remove(node);
      node.className = "waiting";
      this.#enqueue(image);
    };
    const again = element("button", { type: "button", class: "link", disabled: problem.retryAfter > 0, onclick: retry }, "Try again");
    setTimeout(() => (again.disabled = false), 1000 * problem.retryAfter);
    const more = element("span", { class: "more" }, problem.temporary ? again : null);
    node.className = "refused";
    status.replaceChildren(element("b", {}, image.name), ` ${problem.message}`);
    node.append(status, more); // the sentence must not be inside the button
    this.#refusals.add(node);
  }

  /** Choose the first of the files just added as soon as it has a result, and all before it are refused. */
  #settle(image) {
    if (!this.#fresh.includes(image)) return;
    if (!image.id) this.#fresh.splice(this.#fresh.indexOf(image), 1);
    const [first] = this.#fresh;
    if (first && !first.id) return;
    this.#fresh = [];
    this.#dispatch(first ? "choose" : "end", first);
  }

  #dispatch(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
