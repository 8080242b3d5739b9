/** Tasks that need a person, and failures that the person has dismissed. */

import { remember, remembered } from "./store.js";
import { isFinal, isHeld } from "./status.js";

const KEY = "atb-dismissed";

/** Why a task needs a person, most urgent first. */
export const REASONS = {
  review: { label: "In review", icon: "review", css: "is-review" },
  expired: { label: "Lease expired", icon: "silent", css: "is-failed" },
  stuck: { label: "Stuck", icon: "blocked", css: "is-blocked" },
  overdue: { label: "Overdue", icon: "deadline", css: "is-blocked" },
  failed: { label: "Failed", icon: "failed", css: "is-failed" },
};

const ORDER = Object.keys(REASONS);

/** Task id → version at which the failure was dismissed; a later change shows it again. */
const dismissed = new Map(readDismissed());

/** All {task, reason}, most urgent reason first; within a reason, in the board's order. */
export function needsYou(tasks) {
  const found = { review: [], expired: [], stuck: [], overdue: [], failed: [] };
  for (const task of tasks) {
    const reason = reasonOf(task);
    if (reason) found[reason].push({ task, reason });
  }
  return ORDER.flatMap((reason) => found[reason]);
}

/** Why this task needs a person, or null. */
export function reasonOf(task) {
  if (task.status === "review") return "review";
  if (isHeld(task) && task.lease_expired) return "expired";
  if (task.stuck) return "stuck";
  if (task.overdue && !isFinal(task)) return "overdue";
  if (task.status === "failed" && dismissed.get(task.id) !== task.version) return "failed";
  return null;
}

/** Hides failures in this browser until the tasks change. */
export function dismiss(tasks) {
  for (const task of tasks) dismissed.set(task.id, task.version);
  save();
}

/** Forgets dismissed tasks that have changed or left the board, so that the list stays short. */
export function tidyDismissed(store) {
  if (store.truncated) return;
  const before = dismissed.size;
  for (const [id, version] of dismissed) {
    if (store.task(id)?.version !== version) dismissed.delete(id);
  }
  if (dismissed.size !== before) save();
}

function save() {
  remember(KEY, dismissed.size ? JSON.stringify([...dismissed]) : "");
}

function readDismissed() {
  try {
    const entries = JSON.parse(remembered(KEY) || "[]");
    return entries.filter((entry) => Array.isArray(entry) && entry.length === 2);
  } catch {
    return [];
  }
}
