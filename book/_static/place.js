/* Keep the sidebar's scroll position, and scroll to the current page if it is not visible. */
"use strict";
addEventListener("load", () => {
  const list = document.querySelector(".bd-sidebar-primary");
  const here = list?.querySelector("li.current > a.current, li.current > a");
  if (!here) return;
  const { top, bottom } = here.getBoundingClientRect();
  const seen = list.getBoundingClientRect();
  if (top < seen.top || bottom > seen.bottom) list.scrollTop += (top + bottom - seen.top - seen.bottom) / 2;
});
