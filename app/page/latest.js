// Keeps only the newest of many requests for the same place on the page. An older one is aborted and its response
// dropped, so that the controls always belong to what is shown.

export const DEBOUNCE_MS = 60; // a key that is held changes many times a second; only the last value is loaded

const TRIES = 6; // of a request to a server that is full and says when to come again

export class Latest {
  #controller = new AbortController();

  /** `load(signal)` after `waitMs`, then `show` with its result, or `fail` with the Problem. While the server is full it
   * is loaded again, and `busy` is called with a sentence.
   */
  async run({ load, show, fail, busy = () => {}, waitMs = 0 }) {
    this.cancel();
    const { signal } = (this.#controller = new AbortController());
    for (let tries = 1, pauseMs = waitMs; ; tries++) {
      if (pauseMs) await new Promise((resolve) => setTimeout(resolve, pauseMs));
      if (signal.aborted) return;
      try {
        const loaded = await load(signal);
        if (!signal.aborted) show(loaded);
        return;
      } catch (error) {
        if (signal.aborted) return;
        if (!error.retryAfter || tries === TRIES) {
          fail(error);
          return;
        }
        pauseMs = 1000 * error.retryAfter;
        busy(`The server is busy. It is asked again in ${error.retryAfter} s.`);
      }
    }
  }

  cancel() {
    this.#controller.abort();
  }
}

/** `load(values, signal)` when one of the `names` has changed and what is loaded is `needed(values)`, then
 * `show(loaded, values)` or `fail(problem)`. After a failure that may pass, a turn to any tab loads it again.
 */
export function follow(state, names, { needed, load, show, fail, busy }) {
  const latest = new Latest();
  let [changed, failed] = [false, false];
  state.addEventListener("change", ({ detail }) => {
    const values = state.values;
    changed ||= names.some((name) => detail.has(name)) || (failed && detail.has("tab"));
    if (!changed) return;
    latest.cancel();
    if (!values.id || !needed(values)) return;
    changed = failed = false;
    latest.run({
      waitMs: DEBOUNCE_MS,
      load: (signal) => load(values, signal),
      show: (loaded) => show(loaded, values),
      fail: (problem) => {
        failed = problem.temporary;
        fail(problem);
      },
      busy,
    });
  });
}
