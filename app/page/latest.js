// Of many requests for the same place on the page only the newest counts: an older one is aborted, and what it still
// brings is dropped, so that controls never stand beside the picture of other controls.

export class Latest {
  #controller = new AbortController();

  /** `load(signal)` after `wait` ms, then `show` with what it gave, or `fail` with the Problem. */
  async run({ load, show, fail, wait = 0 }) {
    this.cancel();
    const { signal } = (this.#controller = new AbortController());
    if (wait) await new Promise((resolve) => setTimeout(resolve, wait));
    if (signal.aborted) return;
    try {
      const loaded = await load(signal);
      if (!signal.aborted) show(loaded);
    } catch (error) {
      if (!signal.aborted) fail(error);
    }
  }

  cancel() {
    this.#controller.abort();
  }
}
