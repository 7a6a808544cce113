// Pictures on their way: thumbnails with what became of each, from a drop, the clipboard, the file dialog or the samples.

import { classify } from "./api.js";
import { byId, element } from "./element.js";
import { percent } from "./numbers.js";

const AT_ONCE = 4; // requests; the server puts them in one batch

/** Dispatches `choose` with the result of the first picture of those just added, and of one that is clicked. */
export class Queue extends EventTarget {
  #waiting = [];
  #running = 0;
  #fresh = false; // nothing of what was added last is named yet
  #list = byId("queue");

  constructor() {
    super();
    const file = byId("file");
    file.addEventListener("change", () => {
      this.add(file.files);
      file.value = "";
    });
    addEventListener("paste", ({ clipboardData }) => this.add(clipboardData.files));
    byId("samples").addEventListener("click", ({ target }) => this.#sample(target.closest("button")));
    this.#acceptDrops();
  }

  add(files) {
    if (!files.length) return;
    this.#fresh = true;
    for (const file of files) {
      const item = new Item(file, {
        choose: (result) => this.#tell("choose", result),
        again: () => this.#enqueue(item),
      });
      this.#list.append(item.node);
      this.#enqueue(item);
    }
  }

  /** Outline the picture with this id. */
  mark(id) {
    for (const node of this.#list.children) node.classList.toggle("chosen", node.dataset.id === id && id !== "");
  }

  #enqueue(item) {
    this.#waiting.push(item);
    this.#next();
  }

  async #next() {
    if (this.#running >= AT_ONCE || !this.#waiting.length) return;
    const item = this.#waiting.shift();
    this.#running += 1;
    const result = await item.classify();
    this.#running -= 1;
    if (result && this.#fresh) {
      this.#fresh = false;
      this.#tell("choose", result);
    }
    this.#next();
  }

  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  async #sample(button) {
    if (!button) return;
    const name = `${button.dataset.sample}.jpg`;
    const response = await fetch(`/page/samples/${name}`);
    this.add([new File([await response.blob()], name, { type: "image/jpeg" })]);
  }

  #acceptDrops() {
    let inside = 0; // enter and leave come for every element on the way
    const veil = (shown) => byId("veil").classList.toggle("shown", shown);
    const files = (event) => event.dataTransfer?.types.includes("Files");
    addEventListener("dragenter", (event) => files(event) && veil(++inside > 0));
    addEventListener("dragleave", (event) => files(event) && veil(--inside > 0));
    addEventListener("dragover", (event) => files(event) && event.preventDefault());
    addEventListener("drop", (event) => {
      if (!files(event)) return;
      event.preventDefault();
      veil((inside = 0) > 0);
      this.add(event.dataTransfer.files);
    });
  }
}

/** One picture: waiting, named, or in trouble. */
class Item {
  #file;
  #says;
  #button;
  #again;
  node;

  constructor(file, { choose, again }) {
    this.#file = file;
    this.#again = again;
    this.#says = element("span", { class: "says" }, "waiting");
    const image = element("img", { src: URL.createObjectURL(file), alt: "" });
    image.addEventListener("error", () => image.classList.add("unseen")); // a format that this browser does not draw
    this.#button = element("button", { type: "button", disabled: true, title: file.name }, image, this.#says);
    this.#button.addEventListener("click", () => choose(this.result));
    this.node = element("li", { class: "waiting" }, this.#button);
  }

  async classify() {
    this.node.className = "working";
    this.#button.append(this.#says);
    this.#say("…");
    try {
      this.result = await classify(this.#file);
    } catch (problem) {
      this.#refuse(problem);
      return undefined;
    }
    const [best] = this.result.predictions;
    this.node.className = "named";
    this.#say(element("b", {}, best.label), percent(best.score));
    if (!this.result.id) {
      this.#says.append(". The server had no room to keep its maps.");
      return undefined;
    }
    this.node.dataset.id = this.result.id;
    this.#button.disabled = false;
    return this.result;
  }

  #refuse(problem) {
    this.node.className = "refused";
    const away = element("button", { type: "button", class: "link", onclick: () => this.node.remove() }, "Remove");
    const again = element(
      "button",
      {
        type: "button",
        class: "link",
        disabled: problem.retryAfter > 0,
        onclick: () => {
          more.remove();
          this.#again();
        },
      },
      "Try again",
    );
    setTimeout(() => (again.disabled = false), 1000 * problem.retryAfter);
    const more = element("span", { class: "more" }, problem.passing ? again : null, away);
    this.#say(element("b", {}, this.#file.name), ` ${problem.message}`);
    this.node.append(this.#says, more); // a sentence is no part of a button
  }

  #say(...what) {
    this.#says.replaceChildren(...what);
  }
}
