/** Events put together into the lines of the activity drawer; no DOM. */

import { isEnding } from "./sentences.js";

/** The kinds of event that tell of a claim before its ending. */
export const OF_A_CLAIM = ["claimed", "resumed", "started", "progressed"];

/**
 * Lines from events, both newest first. A claim is one line, from its beginning to what its holder told last or to its
 * ending; every other event is a line of its own. A line is {key, events}; its key changes with every event that joins.
 */
export function lines(events) {
  const found = [];
  const open = new Map();
  for (const event of events) {
    const claim = open.get(event.task_id);
    if (isEnding(event)) open.set(event.task_id, add(found, event));
    else if (!OF_A_CLAIM.includes(event.kind)) add(found, event);
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
