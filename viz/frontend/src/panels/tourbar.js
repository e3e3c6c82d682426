/** The tour bar: the stops that a lesson scripts, with captions. Space continues. */

import { tag } from "../base/dom.js";
import { moveTo, select, setExpanded, setPlaying, notify } from "./session.js";
import { readStops } from "../model/tours.js";

/** @typedef {import("./session.js").Session} Session */

const END = "End of the tour: now explore freely.";

/** @param {Session} s */
export function createTour(s) {
  const tourStops = readStops(s.graph, s.timeline);
  const count = tourStops.length;
  let at = 0;
  /** @param {number} next */
  function go(next) {
    if (next < 0 || next > count) return;
    at = next;
    const station = tourStops[at];
    if (station) {
      setPlaying(s, false);
      if (station.expand.some((block) => !s.expanded.has(block)))
        setExpanded(s, new Set([...s.expanded, ...station.expand]));
      moveTo(s, station.position);
      select(s, station.select);
    }
    notify(s, "panel");
  }
  return {
    /** whether Space advances the tour */
    get running() {
      return at < count;
    },
    start: () => go(0),
    next: () => go(at + 1),
    /** A user who steps manually gets the caption of a stop on reaching it; elsewhere the caption fades. */
    draw() {
      if (!count) return null;
      const isHere = (/** @type {import("../base/types.js").TourStop} */ one) => one.position === s.playback.position;
      if (at < count && !isHere(tourStops[at]) && tourStops.some(isHere)) at = tourStops.findIndex(isHere);
      const station = tourStops[at];
      const fadedClass = station && !isHere(station) ? " dim" : "";
      return tag(
        "section.tour",
        {},
        tag("p", { class: `caption${fadedClass}`, role: "status" }, station?.text ?? END),
        tag(
          "div.acts",
          {},
          tag("button", { "aria-disabled": !at, onclick: () => go(at - 1) }, "Back"),
          tag("button.main", { hidden: !station, onclick: () => go(at + 1) }, "Go on"),
          tag("span.dim", {}, station && `${at + 1} of ${count}`),
        ),
      );
    },
  };
}
