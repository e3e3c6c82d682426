/** The exports of the player's module: for pages, and the default one for anywidget. */

import { render } from "./widget.js";

export { startAll } from "./page.js";
export { mount } from "./player.js";
export default { render };
