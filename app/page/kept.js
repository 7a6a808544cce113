// What was loaded last, by the ids of images.

export class Kept {
  #count;
  #load;
  #found = new Map(); // {promise, value} by id; the one that was asked for last is the last

  /** `load(id)` gives a promise. Of `count` images its result is kept; a failure is not. */
  constructor(count, load) {
    this.#count = count;
    this.#load = load;
  }

  get(id) {
    const found = this.#found.get(id) ?? this.#begin(id);
    this.#found.delete(id);
    this.#found.set(id, found);
    if (this.#found.size > this.#count) this.#found.delete(this.#found.keys().next().value);
    return found.promise;
  }

  /** The result for an id, if it is there already. */
  now(id) {
    return this.#found.get(id)?.value;
  }

  #begin(id) {
    const found = { promise: this.#load(id) };
    found.promise.then((value) => (found.value = value), () => this.#found.delete(id));
    return found;
  }
}
