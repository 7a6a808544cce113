// Keeps only the newest of many requests for the same place on the page. An older one is aborted and its response
// dropped, so that the controls always belong to what is shown.

export const DEBOUNCE_MS = 60; // a key that is held changes many times a second; only the last value is loaded

const TRIES = 6; // of a request to a server that is full or away

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** What `load()` gives. While the server is full or away it is loaded again, and `busy` is called with a sentence. */
export async function patient(load, busy = () => {}) {
  for (let tries = 1; ; tries++) {
    try {
      return await load();
    } catch (error) {
      if (!error.retryAfter || tries === TRIES) throw error;
      busy(`${error.status ? "The server is busy." : error.message} It is asked again in ${error.retryAfter} s.`);
      await pause(1000 * error.retryAfter);
    }
  }
}

export class Latest {
  #controller = new AbortController();

  /** `load(signal)` after `waitMs`, as `patient` does it, then `show` with its result, or `fail` with the Problem. */
  async run({ load, show, fail, busy = () => {}, waitMs = 0 }) {
    this.cancel();
    const { signal } = (this.#controller = new AbortController());
    if (waitMs) await pause(waitMs);
    if (signal.aborted) return;
    try {
      const loaded = await patient(() => load(signal), (said) => signal.aborted || busy(said));
      if (!signal.aborted) show(loaded);
    } catch (error) {
      if (!signal.aborted) fail(error);
    }
  }

  cancel() {
    this.#controller.abort();
  }
}
