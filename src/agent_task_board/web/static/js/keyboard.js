/** The registry of shortcuts, and the dialog that lists them. */

import { h, icon } from "./dom.js";

const GROUPS = ["Go to", "Tasks", "Page"];
const SEQUENCE_PAUSE = 1200;

const shortcuts = new Map();
let prefix = "";
let prefixAt = 0;
let dialog = null;

/**
 * Registers a shortcut: one key ("n", "/"), or two in sequence ("g b"). `group` is a heading of the list; `aliases` are
 * further keys; `anywhere` makes it work while a dialog is open. If `action` returns false, the browser handles the key.
 */
export function shortcut(keys, label, action, { group = "Page", aliases = [], anywhere = false } = {}) {
  const entry = { keys, label, action, group, aliases, anywhere };
  for (const name of [keys, ...aliases]) shortcuts.set(name, entry);
}

/** Starts listening; registers "?" itself. */
export function startKeyboard() {
  shortcut("?", "Show this list", showShortcuts, { group: "Page" });
  shortcut("Esc", "Close the open dialog or panel", () => false, { group: "Page" });
  document.addEventListener("keydown", pressed);
}

/** Opens the list of shortcuts. */
export function showShortcuts() {
  dialog ??= document.body.appendChild(h("dialog", { class: "shortcuts", "aria-labelledby": "shortcuts-title" }));
  if (dialog.open) return;
  dialog.replaceChildren(...contents());
  dialog.showModal();
}

function pressed(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || typing(event.target)) return;
  const sequence = prefix && event.timeStamp - prefixAt < SEQUENCE_PAUSE ? `${prefix} ${event.key}` : "";
  prefix = "";
  const entry = shortcuts.get(sequence) ?? shortcuts.get(event.key);
  if (entry) {
    if (!entry.anywhere && document.querySelector("dialog:modal")) return;
    if (entry.action(event.key) !== false) event.preventDefault();
  } else if ([...shortcuts.keys()].some((name) => name.startsWith(`${event.key} `))) {
    prefix = event.key;
    prefixAt = event.timeStamp;
  }
}

function typing(target) {
  return target instanceof Element && target.closest("input:not([type=checkbox], [type=radio], [type=button]), textarea, select, [contenteditable]") !== null;
}

function contents() {
  const close = h("button", { class: "button button-quiet button-icon", type: "button", "aria-label": "Close", on: { click: () => dialog.close() } }, icon("close"));
  const entries = [...new Set(shortcuts.values())];
  const sections = GROUPS.map((group) => [group, entries.filter((entry) => entry.group === group)]).filter(([, list]) => list.length);
  return [
    h("div", { class: "dialog-head" }, h("h2", { id: "shortcuts-title" }, "Keyboard shortcuts"), close),
    ...sections.map(([group, list]) => h("section", { class: "shortcuts-group" }, h("h3", null, group), h("dl", null, list.map(row)))),
  ];
}

function row(entry) {
  const ways = [entry.keys, ...entry.aliases].map((keys) => h("span", { class: "shortcuts-keys" }, keys.split(" ").map((key) => h("kbd", null, shown(key)))));
  return h("div", { class: "shortcuts-row" }, h("dt", null, entry.label), h("dd", null, ways));
}

function shown(key) {
  const arrows = { ArrowDown: "↓", ArrowUp: "↑", ArrowLeft: "←", ArrowRight: "→" };
  return arrows[key] ?? key;
}
