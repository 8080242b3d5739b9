/** Announces board changes to screen readers, a few sentences at a time. */

import { quotedName, visible } from "./printable.js";
import { shortId } from "./status.js";
import { store } from "./store.js";

const PAUSE = 4000;
const MAX_SENTENCES = 3;

let waiting = [];
let timer = 0;

/** Starts watching the board; `region` is the page's live region. */
export function startAnnounce(region) {
  store.addEventListener("tasks", ({ detail }) => {
    if (detail.first) return;
    for (const id of detail.changed) {
      const sentence = sentenceFor(detail.before.get(id), store.task(id));
      if (sentence) waiting.push(sentence);
    }
    if (waiting.length && !timer) speak(region);
  });
}

function speak(region) {
  const sentences = waiting.slice(0, MAX_SENTENCES);
  const more = waiting.length - sentences.length;
  waiting = [];
  region.textContent = visible(sentences.join(". ")) + (more > 0 ? `. And ${more} more ${more === 1 ? "change" : "changes"}` : "") + ".";
  timer = setTimeout(() => {
    timer = 0;
    if (waiting.length) speak(region);
  }, PAUSE);
}

/** The sentence for one change, or null if the change is not worth an interruption. */
function sentenceFor(old, task) {
  const title = task.title || shortId(task.id);
  if (!old) return `New task: ${title}`;
  if (old.status === task.status) return !old.lease_expired && task.lease_expired ? `The lease on ${title} expired` : null;
  const who = task.claimed_by ? quotedName(task.claimed_by) : "Someone";
  switch (task.status) {
    case "claimed":
      return `${who} claimed ${title}`;
    case "running":
      return old.status === "claimed" ? null : `${who} started ${title}`;
    case "review":
      return `${who} submitted ${title} for review`;
    case "done":
      return old.status === "review" ? `${title} was approved` : `${who} completed ${title}`;
    case "failed":
      return `${title} failed`;
    case "cancelled":
      return `${title} was cancelled`;
    default:
      return `${title} is queued again`;
  }
}
