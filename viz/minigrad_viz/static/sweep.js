/** A sweep in a notebook: its picture and its table, drawn again whenever Python has news. */

/** @param {HTMLElement} row @param {string} kind @param {string[]} texts */
function fill(row, kind, texts) {
  texts.forEach((text, k) => {
    const cell = document.createElement(kind);
    cell.textContent = text;
    cell.style.cssText = `padding:2px 10px;text-align:${k === 1 ? "left" : "right"};white-space:nowrap`;
    if (kind === "th") cell.setAttribute("scope", "col");
    row.append(cell);
  });
}

/** @param {{ model: any, el: HTMLElement }} given */
function render({ model, el }) {
  const figure = document.createElement("figure");
  figure.className = "minigrad-sweep";
  figure.style.cssText = "margin:0;overflow-x:auto";
  const image = document.createElement("img");
  image.style.cssText = "width:clamp(600px,100%,1000px);max-width:none;height:auto";
  const said = document.createElement("p");
  said.setAttribute("role", "status");
  said.style.cssText = "margin:8px 0 4px";
  const box = document.createElement("div");
  box.tabIndex = 0;
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", "Trials, the best first");
  box.style.cssText = "max-height:320px;overflow:auto";
  const table = document.createElement("table");
  table.style.cssText = "border-collapse:collapse;font-variant-numeric:tabular-nums";
  box.append(table);
  figure.append(image, said, box);
  el.append(figure);

  const draw = () => {
    const { picture, alt, sentence, rows } = model.get("state");
    image.src = `data:image/svg+xml;utf8,${encodeURIComponent(picture)}`;
    image.alt = alt;
    image.hidden = !picture;
    said.textContent = sentence;
    table.replaceChildren();
    rows.forEach((texts, k) => fill(table.insertRow(), k ? "td" : "th", texts));
  };
  model.on("change:state", draw);
  draw();
  return () => model.off("change:state", draw);
}

export default { render };
