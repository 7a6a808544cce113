// The classes of the model by what the server knows them by, their keys, and by names that a person can choose.

export class Classes {
  #labels;
  #counts = new Map();
  #byLabel = new Map();

  constructor(labels) {
    this.#labels = labels;
    for (const [index, label] of labels.entries()) {
      this.#counts.set(label, (this.#counts.get(label) ?? 0) + 1);
      if (!this.#byLabel.has(label)) this.#byLabel.set(label, index);
    }
  }

  get indices() {
    return this.#labels.keys();
  }

  /** The server takes a text for a label first, then for an index. */
  key(index) {
    return this.#byLabel.has(String(index)) ? this.#labels[index] : String(index);
  }

  /** Undefined for the key of no class. */
  index(key) {
    const index = this.#byLabel.get(key) ?? Number(key || NaN);
    return this.#labels[index] === undefined ? undefined : index;
  }

  /** The label, with the index where another class has the same one. */
  name(index) {
    const label = this.#labels[index];
    return this.#counts.get(label) > 1 ? `${label} (${index})` : label;
  }
}
