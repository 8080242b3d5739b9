/** Draws one task and one dependency of the dependency graph. */

import { svg } from "./dom.js";
import { quotedName, visible } from "./printable.js";
import { router } from "./router.js";
import { isFinal, isHeld, statusOf } from "./status.js";

export const SIZE = { width: 216, height: 68 };

const TEXT_LEFT = 38;
const TEXT_WIDTH = SIZE.width - TEXT_LEFT - 12;
const TITLE = "500 13px";
const META = "400 11px";

/** The link that represents a task; `draw` fills it. */
export function nodeLink(task) {
  return svg("a", { class: "graph-node", href: router.href({ task: task.id }), tabindex: "-1", dataset: { id: task.id } });
}

/** Draws a task into its link. `waitsFor` and `neededBy` count its unfinished dependencies and its dependents. */
export function draw(link, task, { critical, faded, waitsFor, neededBy }) {
  const status = statusOf(task);
  const classes = ["graph-node", status.css];
  if (critical) classes.push("is-critical");
  if (task.status === "done" || task.status === "cancelled") classes.push("is-finished");
  if (faded) classes.push("is-faded");
  link.setAttribute("class", classes.join(" "));
  link.setAttribute("aria-label", visible(accessibleName(task, status, { critical, waitsFor, neededBy })));
  const title = wrap(visible(task.title), 2, TITLE);
  const first = title.length === 1 ? 30 : 22;
  link.replaceChildren(
    svg("title", null, task.title),
    svg("rect", { class: "graph-box", width: SIZE.width, height: SIZE.height, rx: 10 }),
    svg("rect", { class: "graph-mark", x: 10, y: first - 14, width: 20, height: 20, rx: 6 }),
    svg("use", { class: "graph-icon", href: `/static/icons.svg#${status.icon}`, x: 13, y: first - 11, width: 14, height: 14 }),
    ...title.map((line, index) => svg("text", { class: "graph-title", x: TEXT_LEFT, y: first + index * 16 }, line)),
    svg("text", { class: "graph-meta", x: TEXT_LEFT, y: first + title.length * 16 + 2 }, wrap(meta(task, status, waitsFor), 1, META)[0]),
  );
}

/** The path of a dependency through the given points, with an open arrowhead at its end. */
export function edgePath(points) {
  const parts = [`M${at(points[0])}`];
  for (let index = 1; index < points.length; index += 1) {
    const from = points[index - 1];
    const to = points[index];
    const middle = (from.x + to.x) / 2;
    if (Math.abs(from.y - to.y) < 0.5) parts.push(`L${at(to)}`);
    else parts.push(`C${at({ x: middle, y: from.y })} ${at({ x: middle, y: to.y })} ${at(to)}`);
  }
  return `${parts.join("")}m-6 -4l6 4l-6 4`;
}

function at({ x, y }) {
  return `${x.toFixed(1)} ${y.toFixed(1)}`;
}

function meta(task, status, waitsFor) {
  const parts = [status.label];
  if (isHeld(task) && task.progress != null) parts.push(`${task.progress}\u00a0%`);
  if (task.claimed_by && !isFinal(task)) parts.push(task.lease_expired ? `${quotedName(task.claimed_by)}, lease expired` : quotedName(task.claimed_by));
  else if (status.css === "is-blocked") parts.push(`waiting for ${waitsFor}`);
  if (task.overdue) parts.push("overdue");
  return parts.join(" · ");
}

function accessibleName(task, status, { critical, waitsFor, neededBy }) {
  const parts = [task.title, status.label.toLowerCase()];
  if (waitsFor) parts.push(`waiting for ${tasks(waitsFor)}`);
  if (neededBy) parts.push(`needed by ${tasks(neededBy)}`);
  if (critical) parts.push("on the critical path");
  return parts.join(", ");
}

function tasks(count) {
  return `${count} ${count === 1 ? "task" : "tasks"}`;
}

let canvas = null;
const wrapped = new Map();

/** Text wrapped to the node's width, in at most `lines` lines; longer text ends in "…". */
function wrap(text, lines, font) {
  const key = `${font} ${text}`;
  if (wrapped.size > 5000) wrapped.clear();
  if (!wrapped.has(key)) wrapped.set(key, broken(text, lines, measure(font)));
  return wrapped.get(key);
}

function measure(font) {
  canvas ??= document.createElement("canvas").getContext("2d");
  const family = getComputedStyle(document.documentElement).fontFamily;
  return (text) => {
    canvas.font = `${font} ${family}`;
    return canvas.measureText(text).width;
  };
}

function broken(text, lines, width) {
  const found = [];
  let rest = text.slice(0, 300).trim();
  while (rest && found.length < lines) {
    const last = found.length === lines - 1;
    const room = fitting(rest, width, last ? "…" : "");
    if (room === rest.length) {
      found.push(rest);
      break;
    }
    const space = rest.lastIndexOf(" ", room);
    const end = space > room / 2 ? space : Math.max(1, room);
    found.push(rest.slice(0, end).trimEnd() + (last ? "…" : ""));
    rest = rest.slice(end).trimStart();
  }
  return found.length ? found : [""];
}

/** How many characters fit. Room for `ending` is needed only if the text does not fit as a whole. */
function fitting(text, width, ending) {
  if (width(text) <= TEXT_WIDTH) return text.length;
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (width(text.slice(0, middle) + ending) <= TEXT_WIDTH) low = middle;
    else high = middle - 1;
  }
  // Do not split a surrogate pair.
  return /[\uD800-\uDBFF]$/.test(text.slice(0, low)) ? low - 1 : low;
}
