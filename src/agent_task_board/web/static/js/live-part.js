/** Parts of an open page that are redrawn while a person reads it. */

import { fill } from "./dom.js";

/** Replaces the content of an element; the focus stays on the same link or control if it still exists. */
export function swap(element, ...nodes) {
  const active = element.contains(document.activeElement) && document.activeElement !== element ? keyOf(document.activeElement) : null;
  fill(element, ...nodes);
  if (active === null) return;
  const again = [...element.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")].find((node) => keyOf(node) === active);
  if (again) {
    again.focus({ preventScroll: true });
  } else {
    element.tabIndex = -1;
    element.focus({ preventScroll: true });
  }
}

function keyOf(node) {
  return node.getAttribute("href") ?? node.getAttribute("aria-label") ?? node.textContent;
}

/** Remembers JSON values by name; `changed(name, value)` returns whether a value differs from the last one. */
export class LastValues {
  #texts = new Map();

  changed(name, value) {
    const text = JSON.stringify(value) ?? "";
    if (this.#texts.get(name) === text) return false;
    this.#texts.set(name, text);
    return true;
  }
}
