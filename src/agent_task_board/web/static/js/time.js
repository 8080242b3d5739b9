/** Times as people read them: how long ago at a glance, exact in the board's zone on hover. */

import { h } from "./dom.js";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

let zone = "UTC";
let formats = null;

/** The zone of exact times (the board's, not the browser's). */
export function setZone(name) {
  if (name === zone && formats) return;
  zone = name;
  formats = null;
  for (const element of document.querySelectorAll("time[datetime]")) element.title = exact(element.dateTime);
}

/** Milliseconds since the epoch. */
export function now() {
  return Date.now();
}

/** A length of time (milliseconds) in one unit: "45 s", "3 min", "2 h", "5 d". */
export function duration(ms) {
  const length = Math.max(0, ms);
  if (length < MINUTE) return `${Math.floor(length / 1000)} s`;
  if (length < HOUR) return `${Math.floor(length / MINUTE)} min`;
  if (length < 2 * DAY) return `${Math.floor(length / HOUR)} h`;
  return `${Math.floor(length / DAY)} d`;
}

/** "3 min ago", "in 2 h", "just now". */
export function relative(iso) {
  const distance = Date.parse(iso) - now();
  if (Math.abs(distance) < 5000) return "just now";
  return distance < 0 ? `${duration(-distance)} ago` : `in ${duration(distance)}`;
}

/** Date and time to the second in the board's zone, with the zone: "30 Nov 2026, 14:14:05 GMT+8". */
export function exact(iso) {
  const instant = new Date(iso);
  return Number.isNaN(instant.getTime()) ? iso : format().exact.format(instant);
}

/** A short absolute time: "14:14" today, else "30 Nov", with the year when it is another one. */
export function short(iso) {
  const instant = new Date(iso);
  const { day, time, date, longDate } = format();
  if (day.format(instant) === day.format(now())) return time.format(instant);
  return Math.abs(instant - now()) < 300 * DAY ? date.format(instant) : longDate.format(instant);
}

/**
 * A <time> with the exact time on hover. `relative: true` shows "3 min ago" and keeps it true;
 * `elapsed: true` shows the bare length since then ("3 min"); otherwise the exact time is the text.
 */
export function stamp(iso, { relative: isRelative = false, elapsed = false, prefix = "" } = {}) {
  const element = h("time", { dateTime: iso, title: exact(iso) });
  if (isRelative || elapsed) {
    element.dataset.relative = elapsed ? "elapsed" : "relative";
    if (prefix) element.dataset.prefix = prefix;
  }
  element.textContent = words(element);
  return element;
}

/** Calls `task` about once a second while the page is visible; returns a function that ends it. */
export function everySecond(task) {
  ticks.add(task);
  return () => ticks.delete(task);
}

const ticks = new Set([refreshStamps]);

function refreshStamps() {
  for (const element of document.querySelectorAll("time[data-relative]")) {
    const text = words(element);
    if (element.textContent !== text) element.textContent = text;
  }
}

function words(element) {
  const iso = element.dateTime;
  const prefix = element.dataset.prefix ?? "";
  if (element.dataset.relative === "elapsed") return prefix + duration(now() - Date.parse(iso));
  if (element.dataset.relative === "relative") return prefix + relative(iso);
  return exact(iso);
}

function format() {
  formats ??= makeFormats();
  return formats;
}

function makeFormats() {
  const make = (options) => new Intl.DateTimeFormat("en-GB", { timeZone: known(zone), ...options });
  return {
    exact: make({ day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" }),
    time: make({ hour: "2-digit", minute: "2-digit" }),
    date: make({ day: "numeric", month: "short" }),
    longDate: make({ day: "numeric", month: "short", year: "numeric" }),
    day: make({ day: "numeric", month: "numeric", year: "numeric" }),
  };
}

/** A browser may not know a zone that the server knows: its times are then in UTC, and say so. */
function known(name) {
  try {
    Intl.DateTimeFormat("en-GB", { timeZone: name });
    return name;
  } catch {
    return "UTC";
  }
}

setInterval(() => {
  if (document.hidden) return;
  for (const task of ticks) task();
}, 1000);
