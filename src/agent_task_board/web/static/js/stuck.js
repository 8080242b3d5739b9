/** Why a task is stuck: it waits for a task that failed or was cancelled. */

import { h } from "./dom.js";

const ENDINGS = { failed: "failed", cancelled: "was cancelled" };

/**
 * "waits for X, which was cancelled", as an array of strings and nodes; `verb` replaces "waits".
 * `by` is {title, status} of the task that the service names; without it, the sentence names none.
 */
export function waitsFor(by, verb = "waits") {
  if (!by) return [`${verb} for a task that failed or was cancelled`];
  return [`${verb} for `, h("bdi", {}, by.title), `, which ${ENDINGS[by.status]}`];
}
