/** Dates in forms: people write them in the board's zone, whatever zone their browser is in. */

import { store } from "./store.js";

/** The zone in which dates are written: the board's, or UTC where this browser does not know that one. */
export function formZone() {
  try {
    Intl.DateTimeFormat("en", { timeZone: store.timezone });
    return store.timezone;
  } catch {
    return "UTC";
  }
}

/** An instant as the value of a datetime-local input, in the form's zone; null is the empty value. */
export function toInput(iso) {
  if (!iso) return "";
  const parts = new Intl.DateTimeFormat("en-US", {
    timeZone: formZone(), hourCycle: "h23",
    year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit",
  }).formatToParts(new Date(iso));
  const of = (type) => parts.find((part) => part.type === type).value;
  return `${of("year").padStart(4, "0")}-${of("month")}-${of("day")}T${of("hour")}:${of("minute")}`;
}

/** What the server is sent for an input's value: without an offset it reads an instant in the board's zone. */
export function fromInput(value) {
  if (!value) return null;
  return formZone() === store.timezone ? value : `${value}+00:00`;
}
