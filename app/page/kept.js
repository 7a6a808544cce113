// What was loaded last, by the ids of images.

/** `load(id)` gives a promise. Of `count` images its result is kept; a failure is not. */
export class Kept {
  #count;
  #load;
  #promises = new Map(); // the one that was asked for last is the last
  #values = new Map();

  constructor(count, load) {
    this.#count = count;
    this.#load = load;
  }

  get(id) {
    const promise = this.#promises.get(id) ?? this.#begin(id);
    this.#promises.delete(id);
    this.#promises.set(id, promise);
    if (this.#promises.size > this.#count) this.#forget(this.#promises.keys().next().value);
    return promise;
  }

  /** The result for an id, if it is there already. */
  now(id) {
    return this.#values.get(id);
  }

  #begin(id) {
    const promise = this.#load(id);
    promise.then((value) => this.#values.set(id, value), () => this.#forget(id));
    return promise;
  }

  #forget(id) {
    this.#promises.delete(id);
    this.#values.delete(id);
  }
}
