/* A search field above a table of operations that hides rows without a match. */
"use strict";
(() => {
  const table = document.querySelector("table.operations");
  if (!table) return;
  const rows = [...table.tBodies[0].rows];
  const texts = rows.map((row) => [0, 3, 4].map((at) => row.cells[at].textContent).join(" ").toLowerCase());
  const label = document.createElement("label");
  const field = document.createElement("input");
  const count = document.createElement("output");
  label.className = "operations-filter";
  field.type = "search";
  field.placeholder = "tanh, or loss";
  label.append("Filter: ", field, " ", count);
  table.before(label);

  function show() {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach((row, at) => {
      row.hidden = !words.every((word) => texts[at].includes(word));
      shown += row.hidden ? 0 : 1;
    });
    count.textContent = `${shown} of ${rows.length}`;
  }
  field.addEventListener("input", show);
  show();
})();
