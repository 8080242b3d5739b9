/** Times for people: relative at a glance, exact in the board's time zone on hover. */

import { h } from "./dom.js";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

let zone = "UTC";
let formats = null;

/** Sets the zone of exact times: the board's, not the browser's. */
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

/** A duration (milliseconds) in one unit: "45 s", "3 min", "2 h", "5 d". */
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

/** A short absolute time: "14:14" today, otherwise "30 Nov", with the year for distant dates. */
export function short(iso) {
  const instant = new Date(iso);
  const { day, time, date, longDate } = format();
  if (day.format(instant) === day.format(now())) return time.format(instant);
  return Math.abs(instant - now()) < 300 * DAY ? date.format(instant) : longDate.format(instant);
}

/**
 * A <time> with the exact time on hover. `relative: true` shows "3 min ago" and keeps it current;
 * `elapsed: true` shows only the duration since then ("3 min"). By default, the text is the exact time.
 */
export function stamp(iso, { relative: isRelative = false, elapsed = false, prefix = "" } = {}) {
  const element = h("time", { dateTime: iso, title: exact(iso) });
  if (isRelative || elapsed) {
    element.dataset.relative = elapsed ? "elapsed" : "relative";
    if (prefix) element.dataset.prefix = prefix;
  }
  element.textContent = stampText(element);
  return element;
}

/** Calls `callback` about once a second while the page is visible; returns a function that stops the calls. */
export function everySecond(callback) {
  callbacks.add(callback);
  return () => callbacks.delete(callback);
}

const callbacks = new Set([refreshStamps]);

function refreshStamps() {
  for (const element of document.querySelectorAll("time[data-relative]")) {
    const text = stampText(element);
    if (element.textContent !== text) element.textContent = text;
  }
}

function stampText(element) {
  const iso = element.dateTime;
  const prefix = element.dataset.prefix ?? "";
  if (element.dataset.relative === "elapsed") return prefix + duration(now() - Date.parse(iso));
  if (element.dataset.relative === "relative") return prefix + relative(iso);
  return exact(iso);
}

function format() {
  formats ??= createFormats();
  return formats;
}

function createFormats() {
  const build = (options) => new Intl.DateTimeFormat("en-GB", { timeZone: knownZone(zone), ...options });
  return {
    exact: build({ day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" }),
    time: build({ hour: "2-digit", minute: "2-digit" }),
    date: build({ day: "numeric", month: "short" }),
    longDate: build({ day: "numeric", month: "short", year: "numeric" }),
    day: build({ day: "numeric", month: "numeric", year: "numeric" }),
  };
}

/** The zone, or UTC if this browser does not know it. Exact times name their zone either way. */
function knownZone(name) {
  try {
    Intl.DateTimeFormat("en-GB", { timeZone: name });
    return name;
  } catch {
    return "UTC";
  }
}

setInterval(() => {
  if (document.hidden) return;
  for (const callback of callbacks) callback();
}, 1000);
