/* Start players and typeset formulas when they approach the viewport, so that pages load quickly. */
"use strict";
(() => {
  if (!("IntersectionObserver" in window)) return; // start all at once
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

  /** The player's script starts all traces it finds; deferred ones get another class. */
  for (const figure of document.querySelectorAll("figure.minigrad")) {
    figure.querySelector("script.minigrad-trace")?.classList.replace("minigrad-trace", later);
    figure.querySelector(`script.${later}`) && near.observe(figure);
  }

  function start(figure) {
    figure.removeAttribute("tabindex"); // it made the drawing scrollable; a player has focusable buttons
    figure.querySelector(`script.${later}`)?.classList.replace(later, "minigrad-trace");
    globalThis.minigrad?.startAll(figure.parentElement);
  }
})();
