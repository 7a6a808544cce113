// The classes of the model by what the server knows them by, their keys, and by names that a person can choose.

export class Classes {
  #byLabel = new Map(); // the index of each label; NaN where several have one text
  likely = []; // indices of those of the image that is shown, the most likely first

  constructor(labels) {
    this.labels = labels;
    for (const [index, label] of labels.entries()) this.#byLabel.set(label, this.#byLabel.has(label) ? NaN : index);
  }

  get indices() {
    return this.labels.keys();
  }

  /** The server takes a text for a label first, then for an index. */
  key(index) {
    return this.#byLabel.has(String(index)) ? this.labels[index] : String(index);
  }

  /** Undefined for the key of no class, or of several. */
  index(key) {
    const index = this.#byLabel.get(key) ?? Number(key || NaN);
    return this.labels[index] === undefined ? undefined : index;
  }

  /** The key of the class that is explained. The state has none for the most likely one. */
  explained({ label }) {
    return label || (this.likely.length ? this.key(this.likely[0]) : "");
  }

  /** The label, with the index where another class has the same one. */
  name(index) {
    const label = this.labels[index];
    return Number.isNaN(this.#byLabel.get(label)) ? `${label} (${index})` : label;
  }

  /** An answer of the server about `label` and `against`, keys, with names in place of its labels. */
  named(answer, { label, against, prompt }) {
    const name = (text, index) => (text == null || index === undefined ? text : this.name(index));
    return {
      ...answer,
      label: prompt ? answer.label : name(answer.label, answer.index ?? this.index(label)), // one that was typed is no class
      against: name(answer.against, this.index(against)),
    };
  }
}
