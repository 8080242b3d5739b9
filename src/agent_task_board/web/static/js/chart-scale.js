/** Numbers for charts: round ticks, and days and durations as text; no DOM. */

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS = [1, 5, 15, 30, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 20 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 3 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 90 * DAY];

/** About `count` whole-number ticks from 0 to at least `largest`. */
export function countTicks(largest, count = 4) {
  const rough = Math.max(1, largest / count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].map((factor) => factor * power).find((value) => value >= rough));
  return upTo(largest, step);
}

/** Ticks for a duration in seconds, at familiar steps. */
export function lengthTicks(largest, count = 4) {
  const step = STEPS.find((value) => value * count >= largest) ?? Math.ceil(largest / count / DAY) * DAY;
  return upTo(largest, step);
}

function upTo(largest, step) {
  const ticks = [0];
  while (ticks.at(-1) < largest || ticks.length < 2) ticks.push(ticks.at(-1) + step);
  return ticks;
}

/** A duration in seconds, in its two largest units: "45 s", "1 h 30 min", "2 d 4 h"; "–" for none. */
export function lengthText(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < MINUTE) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / MINUTE);
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 24 * 60) return both(Math.floor(minutes / 60), "h", minutes % 60, "min");
  const hours = Math.round(seconds / HOUR);
  return both(Math.floor(hours / 24), "d", hours % 24, "h");
}

function both(large, unit, small, smallUnit) {
  return small ? `${large} ${unit} ${small} ${smallUnit}` : `${large} ${unit}`;
}

// A calendar day is not an instant: format it as the same day in UTC.
const LONG = new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", weekday: "short", day: "numeric", month: "short" });
const SHORT = new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", day: "numeric", month: "short" });

/** "Tue 24 Nov" for "2026-11-24". */
export function dayText(day) {
  return LONG.format(new Date(`${day}T00:00:00Z`)).replace(",", "");
}

/** "24 Nov" for "2026-11-24". */
export function shortDay(day) {
  return SHORT.format(new Date(`${day}T00:00:00Z`));
}
