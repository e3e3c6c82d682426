/** What the player's module gives to a page, and to anywidget by its default. */

import { render } from "./widget.js";

export { startAll } from "./page.js";
export { mount } from "./player.js";
export default { render };
