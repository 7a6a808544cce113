// The tabs: one of the panels is shown, and the address says which.

import { byId } from "./element.js";

/** `names`: ids of the panels, in the order of their tabs. */
export function showTabs(state, names) {
  const list = document.querySelector("[role=tablist]");
  list.append(...names.map((name) => byId(`tab-${name}`)));

  state.follow((values) => {
    for (const name of names) {
      const [tab, chosen] = [byId(`tab-${name}`), name === values.tab];
      tab.ariaSelected = String(chosen);
      tab.tabIndex = chosen ? 0 : -1;
      byId(name).hidden = !chosen;
      if (chosen) list.scrollLeft = tab.offsetLeft - list.clientWidth / 3;
    }
  }, ["tab"]);

  list.addEventListener("click", ({ target, detail }) => {
    const tab = target.closest("[role=tab]");
    if (!tab) return;
    state.set({ tab: tab.getAttribute("aria-controls") });
    if (detail) tab.blur(); // after a click the arrow keys step through layers and heads
  });

  list.addEventListener("keydown", (event) => {
    const shown = names.filter((name) => byId(`tab-${name}`).offsetParent);
    const here = shown.indexOf(state.values.tab);
    const there = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: shown.length - 1 }[event.key];
    if (there === undefined) return;
    const tab = shown.at(there % shown.length);
    state.set({ tab });
    byId(`tab-${tab}`).focus();
    event.preventDefault();
    event.stopPropagation(); // otherwise arrows change the head
  });
}
