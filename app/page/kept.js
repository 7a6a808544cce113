// What was loaded last, by the ids of images.

/** `load(id)` gives a promise. Of `count` images its result is kept; a failure is not. Gives `get(id)`, a promise of the
 * result, and `now(id)`: the result, if it is there already.
 */
export function kept(count, load) {
  const found = new Map(); // {promise, value} by id; the one that was asked for last is the last

  function begin(id) {
    const one = { promise: load(id) };
    one.promise.then((value) => (one.value = value), () => found.delete(id));
    return one;
  }

  function get(id) {
    const one = found.get(id) ?? begin(id);
    found.delete(id);
    found.set(id, one);
    if (found.size > count) found.delete(found.keys().next().value);
    return one.promise;
  }

  return { get, now: (id) => found.get(id)?.value };
}
