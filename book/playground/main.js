/** Start the playground of a page, with the player that the page has loaded. */

import { createCatalogue } from "./catalogue.js";
import { playground } from "./page.js";

const root = document.querySelector(".minigrad-playground");
const data = root?.querySelector("script.minigrad-catalogue")?.textContent;
const { minigrad } = /** @type {{minigrad?: {mount: import("./page.js").Mount}}} */ (/** @type {unknown} */ (globalThis));

if (root && data && minigrad) playground(root, createCatalogue(JSON.parse(data)), minigrad.mount);
