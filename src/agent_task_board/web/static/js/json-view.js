/** JSON as a folding tree; only its open parts are rendered. */

import { h } from "./dom.js";
import { copyButton } from "./copy-button.js";

const ROWS = 100; // entries of one object or list shown at first
const TEXT = 600; // characters of one string shown at first
const OPEN_LEVELS = 2;
const OPEN_ENTRIES = 12;

/** A JSON value as a tree with a copy button; `label` names the value for screen readers. */
export function jsonView(value, { label = "JSON" } = {}) {
  const source = () => JSON.stringify(value, null, 2);
  const body = isNested(value) ? entries(value, 0) : h("p", { class: "json-lone" }, ...leaf(value));
  return h("div", { class: "json" }, copyButton(source, `Copy ${label}`), body);
}

function isNested(value) {
  return value !== null && typeof value === "object" && Object.keys(value).length > 0;
}

function entries(value, level) {
  const pairs = Object.entries(value);
  const rows = h("ul", { class: "json-entries" });
  const more = (from) => {
    for (const [key, item] of pairs.slice(from, from + ROWS)) rows.append(entry(key, item, level, Array.isArray(value)));
    const left = pairs.length - from - ROWS;
    if (left > 0) {
      const next = from + ROWS;
      const show = h("button", { type: "button", class: "button button-quiet" }, `Show ${Math.min(left, ROWS)} more of ${left}`);
      const row = h("li", {}, show);
      show.addEventListener("click", () => {
        row.remove();
        more(next);
        focusRow(rows, next);
      });
      rows.append(row);
    }
  };
  more(0);
  return rows;
}

function focusRow(rows, index) {
  const row = rows.children[index];
  row.tabIndex = -1;
  row.focus();
}

function entry(key, value, level, inList) {
  const name = h("span", { class: inList ? "json-index" : "json-key", dir: "auto" }, key);
  if (!isNested(value)) return h("li", {}, name, " ", ...leaf(value));
  const count = Object.keys(value).length;
  const size = Array.isArray(value) ? `${count} ${count === 1 ? "item" : "items"}` : `${count} ${count === 1 ? "field" : "fields"}`;
  const fold = h("details", {}, h("summary", {}, name, " ", h("span", { class: "json-size" }, size)));
  const draw = () => {
    if (fold.open && !fold.querySelector("ul")) fold.append(entries(value, level + 1));
  };
  fold.addEventListener("toggle", draw);
  fold.open = level + 1 < OPEN_LEVELS && count <= OPEN_ENTRIES;
  draw();
  return h("li", {}, fold);
}

function leaf(value) {
  if (typeof value === "string") return text(value);
  const shown = JSON.stringify(value); // includes empty lists and objects
  const kind = value === null ? "null" : typeof value;
  return [h("span", { class: `json-${kind}` }, shown)];
}

function text(value) {
  if (value === "") return [h("span", { class: "json-null" }, "empty string")];
  const part = h("span", { class: "json-string", dir: "auto" }, value.slice(0, TEXT));
  if (value.length <= TEXT) return [part];
  const show = h("button", { type: "button", class: "button button-quiet" }, `Show all ${value.length.toLocaleString()} characters`);
  show.addEventListener("click", () => {
    part.textContent = value;
    part.tabIndex = -1;
    part.focus();
    show.remove();
  });
  return [part, "… ", show];
}
