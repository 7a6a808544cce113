// Files that cannot be used, with the reasons: one stands open, several are a count that unfolds.

/** `box`: a <details> with a list, and a button that removes all. Gives `add(node)`, whose `place` is its own among all
 * files, whatever the order of their answers.
 */
export function refusals(box) {
  const list = box.querySelector("ul");
  let before = 0;

  function count() {
    const { length } = list.children;
    box.hidden = length === 0;
    box.open = length === 1 || (before > 1 && box.open);
    const unsent = [...list.children].every(({ retry }) => retry);
    box.querySelector("summary").textContent = `${length} files ${unsent ? "did not reach the model" : "cannot be used"}`;
    before = length;
  }

  new MutationObserver(count).observe(list, { childList: true });
  box.querySelector("button").addEventListener("click", () => list.replaceChildren());
  return (node) => list.insertBefore(node, [...list.children].find(({ place }) => place > node.place) ?? null);
}
