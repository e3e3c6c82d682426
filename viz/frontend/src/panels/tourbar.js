/** A tour: the states that a lesson scripts, with a caption each. Space goes on. */

import { h, setText, show } from "./dom.js";
import { moveTo, select, setExpanded, setPlaying } from "./session.js";
import { stationsOf } from "../model/tours.js";

/** @param {any} s */
export function tour(s) {
  const stations = stationsOf(s.graph, s.line);
  let at = -1;
  const caption = h("p", { class: "caption", role: "status" });
  const count = h("span", { class: "dim" });
  const back = h("button", { onclick: () => go(at - 1) }, "Back");
  const on = h("button", { class: "main", onclick: () => go(at + 1) }, "Go on");
  const element = h(
    "section",
    { class: "tour", "aria-label": "Tour" },
    caption,
    h("div", { class: "acts" }, back, on, count),
  );
  show(element, stations.length > 0);
  /** @param {number} next */
  function go(next) {
    if (next < 0 || next > stations.length) return;
    at = next;
    draw();
    const station = stations[at];
    if (!station) return;
    setPlaying(s, false);
    if (station.expand.some((block) => !s.expanded.has(block)))
      setExpanded(s, new Set([...s.expanded, ...station.expand]));
    moveTo(s, station.position);
    select(s, station.select);
  }
  function draw() {
    const over = at >= stations.length;
    setText(caption, over ? "The end of the tour: the player is yours." : (stations[at]?.text ?? ""));
    setText(count, over ? "" : `${at + 1} of ${stations.length}`);
    back.setAttribute("aria-disabled", String(at <= 0));
    show(on, !over);
  }
  return {
    element,
    /** whether Space belongs to the tour */
    get running() {
      return stations.length > 0 && at < stations.length;
    },
    /** A reader who steps on alone hears what a station says on reaching it; elsewhere the caption fades. */
    update(/** @type {string} */ what) {
      const here = s.playback.position;
      if (what !== "moved" || !stations[at]) return;
      const reached = stations.findIndex((station) => station.position === here);
      if (stations[at].position !== here && reached >= 0) {
        at = reached;
        draw();
      }
      caption.classList.toggle("dim", stations[at].position !== here);
    },
    start: () => stations.length > 0 && go(0),
    next: () => go(at + 1),
  };
}
