// Files that cannot be used, with the reasons: one stands open, several are a count that unfolds.

export class Refusals {
  #box;
  #list;

  /** `box`: a <details> with a list, and a button that removes all. */
  constructor(box) {
    this.#box = box;
    this.#list = box.querySelector("ul");
    box.querySelector("button").addEventListener("click", () => {
      this.#list.replaceChildren();
      this.#count();
    });
  }

  /** In the order in which files were added, whatever the order of their answers. */
  add(node) {
    const next = [...this.#list.children].find(({ place }) => place > node.place);
    this.#list.insertBefore(node, next ?? null);
    this.#box.open &&= this.#list.children.length !== 2;
    this.#count();
  }

  remove(node) {
    node.remove();
    this.#count();
  }

  #count() {
    const { length } = this.#list.children;
    this.#box.hidden = length === 0;
    this.#box.querySelector("summary").textContent = `${length} files cannot be used`;
    if (length === 1) this.#box.open = true;
  }
}
