/** Groups events into the lines of the activity drawer; no DOM. */

import { isEnding } from "./sentences.js";

/** The kinds of events of a claim before it ends. */
export const CLAIM_EVENTS = ["claimed", "resumed", "started", "progressed"];

/**
 * Lines from events, both newest first. All events of one claim share a line; every other event has its own line.
 * A line is {key, events}; its key changes with every event that joins.
 */
export function lines(events) {
  const found = [];
  const open = new Map();
  for (const event of events) {
    const claim = open.get(event.task_id);
    if (isEnding(event)) open.set(event.task_id, add(found, event));
    else if (!CLAIM_EVENTS.includes(event.kind)) add(found, event);
    else if (claim) claim.push(event);
    else open.set(event.task_id, add(found, event));
    if (event.kind === "claimed") open.delete(event.task_id);
  }
  return found.map((line) => ({ key: `${line[0].seq}-${line.at(-1).seq}`, events: line }));
}

function add(found, event) {
  const line = [event];
  found.push(line);
  return line;
}
