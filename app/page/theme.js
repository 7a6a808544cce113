// Light, dark, or the theme of the system. A classic script, so that it runs before the first paint.

(() => {
  const ORDER = ["auto", "light", "dark"];
  const root = document.documentElement;

  function show(theme) {
    root.dataset.theme = theme;
    const button = document.getElementById("theme");
    if (button) button.title = button.ariaLabel = `Theme: ${theme === "auto" ? "follow system" : theme}`;
  }

  const kept = () => (ORDER.includes(localStorage.getItem("theme")) ? localStorage.getItem("theme") : "auto");

  show(kept());
  addEventListener("DOMContentLoaded", () => {
    show(kept());
    document.getElementById("theme").addEventListener("click", () => {
      localStorage.setItem("theme", ORDER[(ORDER.indexOf(kept()) + 1) % ORDER.length]);
      show(kept());
    });
  });
})();
