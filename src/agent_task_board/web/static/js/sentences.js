import { h } from "./dom.js";
import { router } from "./router.js";
import { store } from "./store.js";
import { duration, stamp } from "./time.js";

const FIELDS = {
  title: "title", body: "text", queue: "queue", priority: "priority", assignee: "assignee", due_at: "deadline",
  not_before: "earliest start", tags: "tags", dedupe_key: "dedupe key", blocked_by: "dependencies", params: "params",
  result: "result", artifacts: "artifacts", needs_approval: "need of approval", max_attempts: "attempts allowed",
};

/** The words that somebody left with an event: note, error or comment; null where there are none. */
export function remark(event) {
  if (event.kind === "expired") return null; // its error repeats what the sentence says
  return event.data.text ?? event.data.note ?? event.data.error ?? null;
}

/**
 * One event as a sentence: an array of nodes and strings, without its remark and without a full stop.
 * With `withTask` the task is named by a link to it; otherwise it is "the task". `took` goes behind an ending.
 */
export function sentence(event, { withTask = false, took = "" } = {}) {
  const task = withTask ? taskLink(event.task_id) : "the task";
  const who = name(event.actor);
  const tell = TELL[event.kind];
  return tell ? tell(event, who, task, took) : [who, `: ${event.kind.replaceAll("_", " ")} `, task];
}

/**
 * One claim as a sentence, from its events, newest first: what its holder does now, or how it ended and after how long.
 * `remark` says which words the sentence already holds.
 */
export function claimSentence(events, { withTask = false } = {}) {
  const [latest] = events;
  const claim = events.findLast((event) => event.kind === "claimed");
  if (isEnding(latest)) {
    const took = claim ? ` after ${length(Date.parse(latest.at) - Date.parse(claim.at))}` : "";
    return sentence(latest, { withTask, took });
  }
  if (latest === claim) return sentence(latest, { withTask });
  const progress = events.map((event) => changed(event, "progress")?.to).find((value) => value != null);
  const note = events.map((event) => event.data.note).find(Boolean);
  const details = [progress == null ? null : `${progress}\u00a0%`, note ? `“${shortened(note, 160)}”` : null].filter(Boolean);
  const task = withTask ? taskLink(latest.task_id) : "the task";
  return [name(latest.actor), " works on ", task, details.length ? ` (${details.join(", ")})` : ""];
}

/** Does this event end an attempt? */
export function isEnding(event) {
  return event.data.attempt != null && event.kind !== "claimed" && event.kind !== "resumed";
}

/** A link to a task, with its title where the board knows it. */
export function taskLink(id) {
  const title = store.task(id)?.title;
  return h("a", { class: "task-link", href: router.href({ task: id }), title: title ?? id }, title ?? id.slice(-6));
}

const TELL = {
  created: (event, who, task) => [who, " added ", task, ...inQueue(event), ...waiting(event)],
  imported: (event, who, task) => [who, " imported ", task, ...inQueue(event)],
  claimed: (event, who, task) => {
    const lease = Date.parse(event.data.lease_expires_at) - Date.parse(event.at);
    const again = event.data.attempt > 1 ? `, attempt ${event.data.attempt}` : "";
    return [who, " claimed ", task, lease > 0 ? ` for ${length(lease)}` : "", again];
  },
  resumed: (_, who, task) => [who, " took up ", task, " again"],
  started: (event, who, task) => [who, " started ", task, ...percent(event, " at ")],
  progressed: (event, who, task) =>
    changed(event, "progress") ? [who, " is", ...percent(event, " at "), " with ", task] : [who, " works on ", task],
  expired: (event, _, task) => {
    const holder = changed(event, "claimed_by")?.from ?? /^lease of (.+) expired at /.exec(event.data.error ?? "")?.[1];
    const lost = holder ? ["The lease of ", name(holder), " on "] : ["The lease on "];
    return [...lost, task, " ran out", changed(event, "status")?.to === "failed" ? ", and no attempt is left" : ""];
  },
  released: (_, who, task, took) => [who, " put ", task, " back", took],
  handed_off: (event, who, task, took) => [who, " handed ", task, " to ", name(changed(event, "assignee")?.to ?? "another agent"), took],
  completed: (event, who, task, took) =>
    changed(event, "status")?.to === "review" ? [who, " handed in ", task, " for review", took] : [who, " finished ", task, took],
  failed: (event, who, task, took) => {
    if (changed(event, "status")?.to === "failed") return [who, " failed at ", task, " for good", took];
    const next = changed(event, "not_before")?.to;
    return [who, " failed at ", task, took, ...(next ? [", next attempt ", stamp(next, { relative: true })] : [])];
  },
  approved: (_, who, task) => [who, " approved ", task],
  rejected: (_, who, task) => [who, " returned ", task],
  reassigned: (event, who, task) => {
    const from = changed(event, "claimed_by")?.from;
    const to = changed(event, "assignee")?.to;
    const taken = from ? [who, " took ", task, " from ", name(from)] : [who, " reassigned ", task];
    if (from) return to ? [...taken, " for ", name(to)] : taken;
    return [...taken, " to ", to ? name(to) : "anybody"];
  },
  retried: (_, who, task) => [who, " queued ", task, " again"],
  cancelled: (_, who, task) => [who, " cancelled ", task],
  updated: (event, who, task) => {
    const fields = Object.keys(event.data.changes ?? {}).filter((field) => field in FIELDS);
    const [only] = fields;
    if (fields.length === 1 && ["priority", "queue", "max_attempts"].includes(only)) {
      const { from, to } = event.data.changes[only];
      return [who, ` changed the ${FIELDS[only]} of `, task, ` from ${from} to ${to}`];
    }
    if (only === "due_at" && fields.length === 1 && changed(event, only).to) {
      return [who, " set the deadline of ", task, " to ", stamp(changed(event, only).to)];
    }
    return [who, ` changed the ${listed(fields.map((field) => FIELDS[field])) || "details"} of `, task];
  },
  commented: (_, who, task) => [who, " commented on ", task],
  archived: (_, who, task) => [who, " archived ", task],
  unarchived: (_, who, task) => [who, " took ", task, " out of the archive"],
  hook_delivered: (event, _, task) => ["A hook was told of ", task, ` (${event.data.told})`],
  hook_failed: (event, _, task) => ["A hook could not be told of ", task, event.data.error ? `: ${event.data.error}` : ""],
};

/** A length of time that stays on one line. */
function length(ms) {
  return duration(ms).replaceAll(" ", "\u00a0");
}

function name(text) {
  return h("b", { class: "who" }, text);
}

function changed(event, field) {
  return event.data.changes?.[field];
}

function percent(event, before) {
  const progress = changed(event, "progress")?.to;
  return progress == null ? [] : [`${before}${progress}\u00a0%`];
}

function inQueue(event) {
  const queue = changed(event, "queue")?.to;
  return queue && queue !== "default" ? [` to ${queue}`] : [];
}

function waiting(event) {
  const count = changed(event, "blocked_by")?.to?.length ?? 0;
  return count ? [`, which waits for ${count === 1 ? "another task" : `${count} others`}`] : [];
}

function listed(words) {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

function shortened(text, length) {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}
