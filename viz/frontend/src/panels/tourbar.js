/** The tour bar: the stops that a lesson scripts, with captions. Space continues. */

import { tag } from "../base/dom.js";
import { moveTo, select, setExpanded, setPlaying, tell } from "./session.js";
import { stationsOf } from "../model/tours.js";

/** @typedef {import("./session.js").Session} Session */

const END = "End of the tour: now explore freely.";

/** @param {Session} s */
export function tour(s) {
  const stations = stationsOf(s.graph, s.line);
  const many = stations.length;
  let at = 0;
  /** @param {number} next */
  function go(next) {
    if (next < 0 || next > many) return;
    at = next;
    const station = stations[at];
    if (station) {
      setPlaying(s, false);
      if (station.expand.some((block) => !s.expanded.has(block)))
        setExpanded(s, new Set([...s.expanded, ...station.expand]));
      moveTo(s, station.position);
      select(s, station.select);
    }
    tell(s, "panel");
  }
  return {
    /** whether Space advances the tour */
    get running() {
      return at < many;
    },
    start: () => go(0),
    next: () => go(at + 1),
    /** A user who steps manually gets the caption of a stop on reaching it; elsewhere the caption fades. */
    draw() {
      if (!many) return null;
      const here = (/** @type {import("../base/types.js").Station} */ one) => one.position === s.playback.position;
      if (at < many && !here(stations[at]) && stations.some(here)) at = stations.findIndex(here);
      const station = stations[at];
      const faded = station && !here(station) ? " dim" : "";
      return tag(
        "section.tour",
        {},
        tag("p", { class: `caption${faded}`, role: "status" }, station?.text ?? END),
        tag(
          "div.acts",
          {},
          tag("button", { "aria-disabled": !at, onclick: () => go(at - 1) }, "Back"),
          tag("button.main", { hidden: !station, onclick: () => go(at + 1) }, "Go on"),
          tag("span.dim", {}, station && `${at + 1} of ${many}`),
        ),
      );
    },
  };
}
