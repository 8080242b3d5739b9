/** The table of columns and statuses: name, label, icon, CSS class, order. */

/** The columns of the board, from left to right. The last three can be collapsed. */
export const COLUMNS = [
  { name: "queued", label: "Queued", icon: "queued", css: "is-queued", folds: false },
  { name: "blocked", label: "Blocked", icon: "blocked", css: "is-blocked", folds: false },
  { name: "in_progress", label: "In progress", icon: "running", css: "is-progress", folds: false },
  { name: "review", label: "Review", icon: "review", css: "is-review", folds: false },
  { name: "done", label: "Done", icon: "done", css: "is-done", folds: true },
  { name: "failed", label: "Failed", icon: "failed", css: "is-failed", folds: true },
  { name: "cancelled", label: "Cancelled", icon: "cancelled", css: "is-cancelled", folds: true },
];

const BY_NAME = new Map(COLUMNS.map((entry) => [entry.name, entry]));

const STATUSES = {
  queued: { label: "Queued", icon: "queued", css: "is-queued" },
  waiting: { label: "Waiting", icon: "delayed", css: "is-blocked" },
  claimed: { label: "Claimed", icon: "claimed", css: "is-progress" },
  running: { label: "Running", icon: "running", css: "is-progress" },
  review: { label: "In review", icon: "review", css: "is-review" },
  done: { label: "Done", icon: "done", css: "is-done" },
  failed: { label: "Failed", icon: "failed", css: "is-failed" },
  cancelled: { label: "Cancelled", icon: "cancelled", css: "is-cancelled" },
};

/** The column that shows a task. Blocked tasks have the status "queued", but a column of their own. */
export function column(task) {
  const { status } = task;
  if (status === "queued") return task.blocked ? "blocked" : "queued";
  if (status === "claimed" || status === "running") return "in_progress";
  return BY_NAME.has(status) ? status : "blocked";
}

/** The table entry of a column, by name. */
export function columnEntry(name) {
  return BY_NAME.get(name);
}

/** {label, icon, css} for a task, or for a bare status ({status}). */
export function statusOf(task) {
  if (task.status === "queued" && task.blocked) return BY_NAME.get("blocked");
  if (task.status === "queued" && task.delayed) return { label: "Delayed", icon: "delayed", css: "is-queued" };
  return STATUSES[task.status] ?? STATUSES.queued;
}

/** Whether the task has ended: done, failed or cancelled. */
export function isFinal(task) {
  return task.status === "done" || task.status === "failed" || task.status === "cancelled";
}

/** Whether an agent holds the task under a lease. */
export function isHeld(task) {
  return task.status === "claimed" || task.status === "running";
}

/** The last six characters of an id, as cards show it. */
export function shortId(id) {
  return id.slice(-6);
}
