// Light, dark, or the theme of the system. A classic script, so that it runs before the first paint.

(() => {
  const ORDER = ["auto", "light", "dark"];
  const root = document.documentElement;

  function show(theme) {
    root.dataset.theme = theme;
    const button = document.getElementById("theme");
    if (button) button.title = button.ariaLabel = `Theme: ${theme === "auto" ? "follow system" : theme}`;
  }

  /** Where the browser keeps no data of a site, the theme lasts as long as the page. */
  function kept(act) {
    try {
      return act(localStorage);
    } catch {
      return null;
    }
  }

  const before = kept((store) => store.getItem("theme"));
  show(ORDER.includes(before) ? before : "auto");
  addEventListener("DOMContentLoaded", () => {
    show(root.dataset.theme);
    document.getElementById("theme").addEventListener("click", () => {
      const next = ORDER[(ORDER.indexOf(root.dataset.theme) + 1) % ORDER.length];
      kept((store) => store.setItem("theme", next));
      show(next);
    });
  });
})();
