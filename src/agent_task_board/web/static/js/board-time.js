/** Dates in forms. They are in the board's time zone, not in the browser's. */

import { store } from "./store.js";

/** The zone of dates in forms: the board's, or UTC if this browser does not know it. */
export function formZone() {
  try {
    Intl.DateTimeFormat("en", { timeZone: store.timezone });
    return store.timezone;
  } catch {
    return "UTC";
  }
}

/** An instant as the value of a datetime-local input, in the form's zone; null becomes the empty string. */
export function toInput(iso) {
  if (!iso) return "";
  const parts = new Intl.DateTimeFormat("en-US", {
    timeZone: formZone(), hourCycle: "h23",
    year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit",
  }).formatToParts(new Date(iso));
  const of = (type) => parts.find((part) => part.type === type).value;
  return `${of("year").padStart(4, "0")}-${of("month")}-${of("day")}T${of("hour")}:${of("minute")}`;
}

/** What to send for an input's value. The server reads an instant without an offset in the board's zone. */
export function fromInput(value) {
  if (!value) return null;
  return formZone() === store.timezone ? value : `${value}+00:00`;
}
