/** The only module that creates elements. Text always becomes text nodes, never markup, and hides nothing. */

import { visible } from "./printable.js";

const SPOKEN = ["title", "aria-label", "alt", "placeholder"]; // attributes that people read or hear
const SVG = "http://www.w3.org/2000/svg";

/**
 * Creates an element. Props: `class`, `dataset`, `on` ({event: function}), attributes (names with a dash, `role`, `list`,
 * `form` and names that are not properties); the rest are properties. Children: nodes, strings, numbers, arrays; null and false are skipped.
 */
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined) continue;
    if (key === "class") element.className = value;
    else if (key === "dataset") Object.assign(element.dataset, value);
    else if (key === "on") listen(element, value);
    else if (isAttribute(element, key)) setAttribute(element, key, value);
    else element[key] = SPOKEN.includes(key) ? visible(String(value)) : value;
  }
  append(element, children);
  return element;
}

/** Creates an SVG element. Every entry of `attrs` is an attribute, except `on` and `dataset`, which work as in `h`. */
export function svg(tag, attrs, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attrs ?? {})) {
    if (key === "on") listen(element, value);
    else if (key === "dataset") Object.assign(element.dataset, value);
    else setAttribute(element, key, value);
  }
  append(element, children);
  return element;
}

/** An icon from icons.svg; hidden from screen readers unless it has a label. */
export function icon(name, label) {
  const spoken = label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" };
  return svg("svg", { class: "icon", ...spoken }, svg("use", { href: `/static/icons.svg#${name}` }));
}

/** Replaces the content of an element; children as for `h`. */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false || child === true) continue;
    if (Array.isArray(child)) append(element, child);
    else element.append(child instanceof Node ? child : visible(String(child)));
  }
}

function listen(element, handlers) {
  for (const [event, handler] of Object.entries(handlers)) element.addEventListener(event, handler);
}

function isAttribute(element, key) {
  return key.includes("-") || key === "role" || !(key in element) || key === "list" || key === "form";
}

/** `false` leaves the attribute out, except for ARIA states, which have "false" as a value. */
function setAttribute(element, key, value) {
  if (value === null || value === undefined) return;
  if (value === false && !key.startsWith("aria-")) return;
  const text = SPOKEN.includes(key) ? visible(String(value)) : String(value);
  element.setAttribute(key, value === true && !key.startsWith("aria-") ? "" : text);
}
