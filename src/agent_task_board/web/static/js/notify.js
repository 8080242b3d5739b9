/** The number in the tab's title, and browser notifications for those who ask for them. */

import { needsYou, REASONS } from "./needs.js";
import { router } from "./router.js";
import { remember, remembered, store } from "./store.js";

const KEY = "atb-notify";
const AT_ONCE = 3;

let known = null;

/** Watches the board from now on. */
export function startNotify() {
  store.addEventListener("tasks", () => look());
  document.addEventListener("needs-changed", () => look());
}

/** Whether this browser can notify at all. */
export function canNotify() {
  return "Notification" in window;
}

/** Whether notifications are switched on here and allowed by the browser. */
export function notifying() {
  return canNotify() && Notification.permission === "granted" && remembered(KEY) === "on";
}

/** Switches notifications on or off; asks the browser only here, so only after a click. Resolves to the new state. */
export async function switchNotify(on) {
  if (!on) remember(KEY, "");
  else if ((await Notification.requestPermission()) === "granted") remember(KEY, "on");
  return notifying();
}

function look() {
  const needs = needsYou(store.sorted);
  document.title = needs.length ? `(${needs.length}) Agent Task Board` : "Agent Task Board";
  const keys = new Set(needs.map(({ task, reason }) => `${task.id} ${reason}`));
  const fresh = known ? needs.filter(({ task, reason }) => !known.has(`${task.id} ${reason}`)) : [];
  known = keys;
  if (fresh.length && document.hidden && notifying()) announce(fresh);
}

function announce(fresh) {
  if (fresh.length > AT_ONCE) {
    show(`${fresh.length} tasks need you`, fresh.slice(0, AT_ONCE).map(({ task }) => task.title).join("\n"), {});
    return;
  }
  for (const { task, reason } of fresh) show(REASONS[reason].label, task.title, { task: task.id });
}

function show(title, body, place) {
  let notification;
  try {
    notification = new Notification(title, { body, tag: place.task ?? "atb" });
  } catch {
    return; // Some phones have the class but allow notifications from service workers only.
  }
  notification.addEventListener("click", () => {
    window.focus();
    router.go(place);
    notification.close();
  });
}
