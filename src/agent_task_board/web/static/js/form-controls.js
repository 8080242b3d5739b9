/** The controls of the task form, one per field: each renders itself, reads its value and shows its error. */

import { formZone, fromInput, toInput } from "./board-time.js";
import { h } from "./dom.js";
import "./elements/chips-field.js";
import "./elements/dependency-field.js";
import { visible } from "./printable.js";
import { store } from "./store.js";

/** A value that cannot be sent; the field shows the message. */
export class InvalidValue extends Error {}

/**
 * The fields that can be edited, in form order. `kind` selects the control; `long` fields take the full width.
 */
export const FIELDS = [
  { name: "title", label: "Title", kind: "line", long: true, required: true },
  { name: "body", label: "Description", kind: "text", rows: 8, long: true, hint: "Supports Markdown" },
  { name: "queue", label: "Queue", kind: "line", suggestions: () => new Set(store.sorted.map((task) => task.queue)), empty: "default", placeholder: "default" },
  { name: "priority", label: "Priority", kind: "number", min: -1_000_000, max: 1_000_000, hint: "Higher numbers are claimed first", empty: 0, placeholder: "0" },
  { name: "assignee", label: "Assignee", kind: "line", suggestions: () => store.agents.keys(), hint: "Leave empty for any agent", empty: null },
  { name: "tags", label: "Tags", kind: "tags", hint: "Press Enter or comma to add a tag" },
  { name: "due_at", label: "Deadline", kind: "instant" },
  { name: "not_before", label: "Not before", kind: "instant" },
  { name: "blocked_by", label: "Depends on", kind: "dependencies", long: true, hint: "Blocked until all of these tasks are done" },
  { name: "max_runtime", label: "Seconds an attempt may take", kind: "number", min: 1, max: 604800, empty: null },
  { name: "max_attempts", label: "Attempt limit", kind: "number", min: 1, max: 1000, empty: null },
  { name: "dedupe_key", label: "Dedupe key", kind: "line", hint: "At most one unfinished task can have it", empty: null },
  { name: "params", label: "Params", kind: "json", rows: 4, long: true, hint: "JSON object with input for the agent" },
  { name: "needs_approval", label: "Needs approval", kind: "switch", long: true },
];

/** Field names that the server spells differently. */
const SERVER_NAMES = { depends_on: "blocked_by" };

/** The control for the name in a server error's `details.field`, or undefined. */
export function controlFor(controls, name) {
  return controls.get(SERVER_NAMES[name] ?? name);
}

/** {node, input, read(), write(value), setError(text)} for a field; `self` is the id of the task being edited. */
export function createControl(field, { self = null } = {}) {
  const id = `form-${field.name}`;
  const error = h("p", { class: "field-error", id: `${id}-error`, role: "alert", hidden: true });
  const hintText = field.kind === "instant" ? `Time zone: ${formZone()}` : field.hint;
  const hint = hintText && h("p", { class: "hint", id: `${id}-hint` }, hintText);
  const describedBy = [hint && hint.id, error.id].filter(Boolean).join(" ");
  const control = KINDS[field.kind](field, id, describedBy, self);
  const label = h("label", { for: id }, field.label);
  const node = field.kind === "switch"
    ? h("div", { class: "field field-switch is-long" }, control.element, label, error)
    : h("div", { class: field.long ? "field is-long" : "field" }, label, control.element, hint, error);
  const setError = (text) => {
    error.textContent = visible(text ?? "");
    error.hidden = !text;
    control.input.setAttribute("aria-invalid", String(Boolean(text)));
  };
  node.addEventListener("input", () => setError(null));
  return { ...control, node, setError };
}

const KINDS = {
  line(field, id, describedBy) {
    const names = [...(field.suggestions?.() ?? [])];
    const list = names.length ? h("datalist", { id: `${id}-list` }, ...names.map((value) => h("option", { value }))) : null;
    const input = h("input", { id, dir: "auto", autocomplete: "off", list: list && list.id, placeholder: field.placeholder ?? "", required: field.required ?? false, "aria-describedby": describedBy });
    return {
      element: list ? h("div", {}, input, list) : input,
      input,
      read() {
        const text = input.value.trim();
        if (!text && field.required) throw new InvalidValue(`${field.label} is required.`);
        return text || (field.empty === undefined ? "" : field.empty);
      },
      write: (value) => { input.value = value ?? ""; },
    };
  },

  text(field, id, describedBy) {
    const input = h("textarea", { id, rows: field.rows, dir: "auto", "aria-describedby": describedBy });
    return { element: input, input, read: () => input.value, write: (value) => { input.value = value ?? ""; } };
  },

  number(field, id, describedBy) {
    const input = h("input", { id, type: "number", step: 1, min: String(field.min), max: String(field.max), inputMode: "numeric", placeholder: field.placeholder ?? "", "aria-describedby": describedBy });
    return {
      element: input,
      input,
      read() {
        if (input.validity.badInput) throw new InvalidValue("Enter a number.");
        if (input.value === "") return field.empty;
        const number = Number(input.value);
        if (!Number.isInteger(number) || number < field.min || number > field.max) {
          throw new InvalidValue(`Enter a whole number from ${field.min.toLocaleString()} to ${field.max.toLocaleString()}.`);
        }
        return number;
      },
      write: (value) => { input.value = value ?? ""; },
    };
  },

  instant(_, id, describedBy) {
    const input = h("input", { id, type: "datetime-local", max: "9999-12-31T23:59", "aria-describedby": describedBy });
    return {
      element: input,
      input,
      read() {
        if (input.validity.badInput) throw new InvalidValue("Enter both a date and a time, or clear the field.");
        return fromInput(input.value);
      },
      write: (value) => { input.value = toInput(value); },
    };
  },

  tags(field, id, describedBy) {
    const known = new Set(store.sorted.flatMap((task) => task.tags));
    const element = document.createElement("atb-chips-field").setUp({ id, suggestions: [...known].slice(0, 200) });
    const input = element.querySelector("input");
    input.setAttribute("aria-describedby", describedBy);
    return { element, input, read: () => element.values, write: (value) => { element.values = value ?? []; } };
  },

  dependencies(_, id, describedBy, self) {
    const element = document.createElement("atb-dependency-field").setUp({ id, self, describedBy });
    return {
      element,
      input: element.querySelector("input"),
      read() {
        if (element.unfinished) throw new InvalidValue("Choose a task from the list, or clear the search.");
        return element.values;
      },
      write: (value) => { element.values = value ?? []; },
    };
  },

  json(field, id, describedBy) {
    const input = h("textarea", { id, rows: field.rows, class: "mono", spellcheck: false, dir: "ltr", "aria-describedby": describedBy });
    return {
      element: input,
      input,
      read: () => readObject(input.value),
      write: (value) => { input.value = value && Object.keys(value).length ? JSON.stringify(value, null, 2) : ""; },
    };
  },

  switch(_, id, describedBy) {
    const input = h("input", { id, type: "checkbox", "aria-describedby": describedBy });
    return { element: input, input, read: () => input.checked, write: (value) => { input.checked = Boolean(value); } };
  },
};

function readObject(text) {
  if (!text.trim()) return {};
  let value;
  try {
    value = JSON.parse(text, exactNumber);
  } catch (error) {
    throw error instanceof InvalidValue ? error : new InvalidValue(`Invalid JSON: ${error.message}`);
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) throw new InvalidValue("Params must be a JSON object: { … }");
  return value;
}

/** Browsers round whole numbers beyond 2^53: show an error instead of sending a different number. */
function exactNumber(_, value) {
  if (typeof value === "number" && !Number.isSafeInteger(value) && Number.isInteger(value)) {
    throw new InvalidValue(`Browsers cannot store ${value.toLocaleString()} exactly. Enter it as a string, or use the CLI.`);
  }
  return value;
}
