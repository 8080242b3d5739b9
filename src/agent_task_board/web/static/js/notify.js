/** The number in the tab's title, and optional browser notifications. */

import { needsYou, REASONS } from "./needs.js";
import { visible } from "./printable.js";
import { router } from "./router.js";
import { remember, remembered, store } from "./store.js";

const KEY = "atb-notify";
const MAX_SINGLE = 3; // more new tasks than this share one notification

let previous = null;

/** Starts watching the board. */
export function startNotify() {
  store.addEventListener("tasks", () => update());
  document.addEventListener("needs-changed", () => update());
}

/** Whether this browser supports notifications. */
export function canNotify() {
  return "Notification" in window;
}

/** Whether notifications are turned on here and allowed by the browser. */
export function notifying() {
  return canNotify() && Notification.permission === "granted" && remembered(KEY) === "on";
}

/** Turns notifications on or off. Call it after a click: browsers ask for permission only then. Resolves to the new state. */
export async function switchNotify(on) {
  if (!on) remember(KEY, "");
  else if ((await Notification.requestPermission()) === "granted") remember(KEY, "on");
  return notifying();
}

function update() {
  const needs = needsYou(store.sorted);
  document.title = needs.length ? `(${needs.length}) Agent Task Board` : "Agent Task Board";
  const current = new Set(needs.map(({ task, reason }) => `${task.id} ${reason}`));
  const fresh = previous ? needs.filter(({ task, reason }) => !previous.has(`${task.id} ${reason}`)) : [];
  previous = current;
  if (fresh.length && document.hidden && notifying()) announce(fresh);
}

function announce(fresh) {
  if (fresh.length > MAX_SINGLE) {
    show(`${fresh.length} tasks need you`, fresh.slice(0, MAX_SINGLE).map(({ task }) => task.title).join("\n"), {});
    return;
  }
  for (const { task, reason } of fresh) show(REASONS[reason].label, task.title, { task: task.id });
}

function show(title, body, place) {
  let notification;
  try {
    notification = new Notification(title, { body: visible(body), dir: "auto", tag: place.task ?? "atb" });
  } catch {
    return; // Some phones have the class but allow notifications from service workers only.
  }
  notification.addEventListener("click", () => {
    window.focus();
    router.go(place);
    notification.close();
  });
}
