/* Players start, and formulas are set, as a reader comes near them: until then a page has pictures, and is quick. */
"use strict";
(() => {
  if (!("IntersectionObserver" in window)) return; // then all start at once
  globalThis.MathJax = { ...globalThis.MathJax, loader: { load: ["ui/lazy"] } };
  const later = "minigrad-later";
  const near = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        near.unobserve(entry.target);
        start(entry.target);
      }
    },
    { rootMargin: "50% 0px" },
  );

  /** The player's own script starts what it finds; what it shall not find yet has another name. */
  for (const figure of document.querySelectorAll("figure.minigrad")) {
    figure.querySelector("script.minigrad-trace")?.classList.replace("minigrad-trace", later);
    figure.querySelector(`script.${later}`) && near.observe(figure);
  }

  function start(figure) {
    figure.removeAttribute("tabindex"); // which scrolled its picture: a player is reached by its buttons
    figure.querySelector(`script.${later}`)?.classList.replace(later, "minigrad-trace");
    globalThis.minigrad?.startAll(figure.parentElement);
  }
})();
