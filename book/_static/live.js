/*
 * Run a lesson beside its text: a "Run live" link opens a panel with the live notebook in the right half of the window.
 * In a narrow window, or with a modifier key, it stays a link that opens another tab.
 */
"use strict";
(() => {
  const WIDE = matchMedia("(min-width: 1000px)");
  const [NARROWEST, WIDEST, STEP, KEY] = [25, 75, 5, "minigrad-live-width"]; // per cent of the window
  const FROM_DISK =
    "Browsers run Python only in pages that come from a server. In the folder of this book, run python -m http.server, " +
    "and open http://localhost:8000.";
  let panel = null; // created when it is first opened; closing hides it, so that the notebook keeps its state

  for (const link of document.querySelectorAll("a.live")) {
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
      const isOnDisk = new URL(link.href).protocol === "file:";
      if (!isOnDisk && !WIDE.matches) return;
      event.preventDefault();
      if (isOnDisk) explain(link);
      else if (link.dataset.beside) location.href = link.dataset.beside;
      else if (panel?.isOpen()) panel.close();
      else open(link);
    });
    if (link.dataset.beside) continue;
    link.setAttribute("aria-expanded", "false");
    if (location.hash === "#live") link.click();
  }
  WIDE.addEventListener("change", () => WIDE.matches || panel?.close());

  function explain(link) {
    if (link.parentElement.querySelector(".live-note")) return;
    link.parentElement.append(create("span", { class: "live-note", role: "status" }, FROM_DISK));
  }

  function open(link) {
    panel ??= createPanel(link);
    panel.open();
  }

  function createPanel(link) {
    const title = document.querySelector("article h1")?.firstChild?.textContent ?? "";
    const handle = create("div", {
      ...{ class: "live-handle", role: "separator", tabindex: 0, "aria-orientation": "vertical" },
      ...{ "aria-label": "Width of the live notebook", "aria-valuemin": NARROWEST, "aria-valuemax": WIDEST },
    });
    const hint = create("span", { class: "live-hint" }, "The first start takes 10 to 20 seconds.");
    const tab = create("a", { href: link.href, target: "_blank" }, "New tab");
    const button = create("button", { type: "button" }, "Close");
    const frame = create("iframe", { title: `Live notebook: ${title}`, src: link.href });
    const element = create("aside", { class: "live-panel", "aria-label": "Live notebook" }, handle);
    element.append(create("div", { class: "live-bar" }, hint, tab, button), frame);
    document.body.append(element);

    const root = document.documentElement;
    const resize = (width) => {
      const share = Math.round(Math.max(NARROWEST, Math.min(WIDEST, width)));
      root.style.setProperty("--live-width", `${share}vw`);
      handle.setAttribute("aria-valuenow", share);
      handle.setAttribute("aria-valuetext", `${share} per cent of the window`);
      sessionStorage.setItem(KEY, share);
      dispatchEvent(new Event("resize")); // the theme makes code focusable where it has become scrollable
    };
    const isOpen = () => !element.hidden;
    const show = (isShown) => {
      element.hidden = !isShown;
      root.classList.toggle("live-open", isShown);
      link.setAttribute("aria-expanded", isShown);
      dispatchEvent(new Event("resize"));
    };
    const close = () => {
      if (!isOpen()) return;
      const hadFocus = element.contains(document.activeElement);
      show(false);
      if (hadFocus) link.focus();
    };
    button.addEventListener("click", close);
    element.addEventListener("keydown", (event) => event.key === "Escape" && close());
    resizeByHandle(handle, frame, resize);
    resize(Number(sessionStorage.getItem(KEY)) || 50);
    return { isOpen, close, open: () => (show(true), button.focus()) };
  }

  function resizeByHandle(handle, frame, resize) {
    handle.addEventListener("keydown", (event) => {
      const now = Number(handle.getAttribute("aria-valuenow"));
      const next = { ArrowLeft: now + STEP, ArrowRight: now - STEP, Home: NARROWEST, End: WIDEST }[event.key];
      if (next === undefined) return;
      event.preventDefault();
      resize(next);
    });
    const drag = (event) => resize((1 - event.clientX / innerWidth) * 100);
    handle.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      handle.setPointerCapture(event.pointerId);
      frame.style.pointerEvents = "none"; // or it would get the events of the drag
      handle.addEventListener("pointermove", drag);
    });
    handle.addEventListener("lostpointercapture", () => {
      frame.style.pointerEvents = "";
      handle.removeEventListener("pointermove", drag);
    });
  }

  function create(name, attributes, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  }
})();
