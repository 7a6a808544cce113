// Runs tasks, some of them at a time.

/** Gives `run(task)`, which begins a task once fewer than `count` others run, and gives what it gives. */
export function atMost(count) {
  const waiting = [];
  let running = 0;

  function next() {
    if (running === count || !waiting.length) return;
    running += 1;
    waiting.shift()();
  }

  return async (task) => {
    await new Promise((begin) => {
      waiting.push(begin);
      next();
    });
    try {
      return await task();
    } finally {
      running -= 1;
      next();
    }
  };
}
