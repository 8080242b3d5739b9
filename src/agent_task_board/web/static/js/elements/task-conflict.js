/** Lists what changed in a task while it was being edited. */

import { h } from "../dom.js";
import { FIELDS } from "../form-controls.js";
import { exact } from "../time.js";

const LONG = 120;
const STATE = [
  { name: "status", label: "Status" },
  { name: "claimed_by", label: "Holder" },
];

/** The differences as a list; fields in `touched` also have unsaved changes and are marked. */
export function changedMeanwhile(before, after, touched) {
  const changed = [...FIELDS, ...STATE].filter(({ name }) => JSON.stringify(before[name]) !== JSON.stringify(after[name]));
  if (!changed.length) return h("p", {}, "None of the fields in this form changed.");
  return h("ul", { class: "meanwhile" }, ...changed.map((field) => h("li", {},
    h("b", {}, field.label), ": ", ...difference(field, before[field.name], after[field.name]), " ",
    touched.has(field.name) && h("span", { class: "chip chip-warning" }, "You changed this too"))));
}

/** Short values side by side; for a long text only the new one, because its beginning may not show the change. */
function difference(field, before, after) {
  if (field.kind !== "text" && field.kind !== "json") return [shown(field, before), " → ", shown(field, after)];
  const text = typeof after === "string" ? after : JSON.stringify(after, null, 2);
  return [h("details", {}, h("summary", {}, "Show the new value"), h("pre", { class: "meanwhile-text", dir: "auto", tabIndex: 0, role: "region", "aria-label": field.label }, text))];
}

function shown(field, value) {
  if (value === null || value === "" || (Array.isArray(value) && !value.length)) return h("i", {}, "none");
  if (field.kind === "instant") return exact(value);
  if (field.kind === "switch") return value ? "yes" : "no";
  if (field.kind === "dependencies") return value.map((id) => id.slice(-6)).join(", ");
  const text = Array.isArray(value) ? value.join(", ") : String(value);
  return h("bdi", {}, text.length > LONG ? `${text.slice(0, LONG)}…` : text);
}
