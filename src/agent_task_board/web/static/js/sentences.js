import { h } from "./dom.js";
import { quotedName } from "./printable.js";
import { router } from "./router.js";
import { store } from "./store.js";
import { duration, stamp } from "./time.js";

const FIELDS = {
  title: "title", body: "description", queue: "queue", priority: "priority", assignee: "assignee", due_at: "deadline",
  not_before: "start time", tags: "tags", dedupe_key: "dedupe key", blocked_by: "dependencies", params: "params",
  result: "result", artifacts: "artifacts", needs_approval: "approval requirement", max_attempts: "attempt limit", max_runtime: "runtime limit",
};

/** The text that the actor attached to an event: note, error or comment; null if there is none. */
export function remark(event) {
  if (event.kind === "expired") return null; // its error repeats the sentence
  return event.data.text ?? event.data.note ?? event.data.error ?? null;
}

/**
 * One event as a sentence: an array of nodes and strings, without the remark and the full stop.
 * With `withTask`, a link names the task; otherwise the sentence says "the task". `took` (" after 5 min") follows the verb of an ending.
 */
export function sentence(event, { withTask = false, took = "" } = {}) {
  const task = withTask ? taskLink(event.task_id) : "the task";
  const who = name(event.actor);
  const build = SENTENCES[event.kind];
  const told = build ? build(event, who, task, took) : [who, `: ${event.kind.replaceAll("_", " ")} `, task];
  return event.imported ? [...told, " ", importedMark()] : told;
}

/** The mark of an event or comment that an import copied: an approval in a file is none on this board. */
export function importedMark() {
  return h("span", { class: "chip imported", title: "From an imported file. Nobody on this board saw who did it." }, "imported");
}

/**
 * One claim as a sentence, from its events, newest first: what the holder is doing, or how the attempt ended and how
 * long it took. The sentence includes the latest note.
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
  const details = [progress == null ? null : `${progress}\u00a0%`, note ? h("bdi", {}, `“${shortened(note, 160)}”`) : null].filter(Boolean);
  const task = withTask ? taskLink(latest.task_id) : "the task";
  const [first, second] = details;
  const told = details.length ? [" (", first, second ? ", " : "", second, ")"] : [];
  return [name(latest.actor), " is working on ", task, ...told, ...(latest.imported ? [" ", importedMark()] : [])];
}

/** Whether this event ends an attempt. */
export function isEnding(event) {
  return event.data.attempt != null && event.kind !== "claimed" && event.kind !== "resumed";
}

/** A link to a task. Its text is the title, or the short id if the board does not show the task. */
export function taskLink(id) {
  const title = store.task(id)?.title;
  return h("a", { class: "task-link", dir: "auto", href: router.href({ task: id }), title: title ?? id }, title ?? id.slice(-6));
}

const SENTENCES = {
  created: (event, who, task) => [who, " added ", task, ...inQueue(event), ...waiting(event)],
  imported: (event, who, task) => [who, " imported ", task, ...inQueue(event)],
  claimed: (event, who, task) => {
    const lease = Date.parse(event.data.lease_expires_at) - Date.parse(event.at);
    const again = event.data.attempt > 1 ? `, attempt ${event.data.attempt}` : "";
    return [who, " claimed ", task, lease > 0 ? ` for ${length(lease)}` : "", again];
  },
  resumed: (_, who, task) => [who, " resumed ", task],
  started: (event, who, task) => [who, " started ", task, ...percent(event, " at ")],
  progressed: (event, who, task) =>
    changed(event, "progress") ? [who, " reported", ...percent(event, " "), " on ", task] : [who, " is working on ", task],
  expired: (event, _, task) => {
    const holder = changed(event, "claimed_by")?.from ?? /^lease of (.+) expired at /.exec(event.data.error ?? "")?.[1];
    const lost = holder ? [name(holder), "’s lease on "] : ["The lease on "];
    return [...lost, task, " expired", changed(event, "status")?.to === "failed" ? "; no attempts left" : ""];
  },
  released: (_, who, task, took) => [who, " released ", task, took],
  handed_off: (event, who, task, took) => [who, " handed off ", task, " to ", name(changed(event, "assignee")?.to ?? "another agent"), took],
  completed: (event, who, task, took) =>
    changed(event, "status")?.to === "review" ? [who, " submitted ", task, " for review", took] : [who, " completed ", task, took],
  failed: (event, who, task, took) => {
    if (changed(event, "status")?.to === "failed") return [who, " failed ", task, " permanently", took];
    const next = changed(event, "not_before")?.to;
    return [who, " failed ", task, took, ...(next ? ["; next attempt ", stamp(next, { relative: true })] : [])];
  },
  approved: (_, who, task) => [who, " approved ", task],
  rejected: (_, who, task) => [who, " rejected ", task],
  reassigned: (event, who, task) => {
    const from = changed(event, "claimed_by")?.from;
    const to = changed(event, "assignee")?.to;
    const source = from ? [" from ", name(from)] : [];
    return [who, " reassigned ", task, ...source, " to ", to ? name(to) : "any agent"];
  },
  retried: (_, who, task) => [who, " retried ", task],
  cancelled: (_, who, task) => [who, " cancelled ", task],
  updated: (event, who, task) => {
    const fields = Object.keys(event.data.changes ?? {}).filter((field) => field in FIELDS);
    const [only] = fields;
    if (fields.length === 1 && ["priority", "queue", "max_attempts"].includes(only)) {
      const { from, to } = event.data.changes[only];
      const [old, fresh] = [from, to].map((value) => h("bdi", {}, only === "queue" ? quotedName(value) : value));
      return [who, ` changed the ${FIELDS[only]} of `, task, " from ", old, " to ", fresh];
    }
    if (only === "due_at" && fields.length === 1 && changed(event, only).to) {
      return [who, " set the deadline of ", task, " to ", stamp(changed(event, only).to)];
    }
    return [who, ` changed the ${listed(fields.map((field) => FIELDS[field])) || "details"} of `, task];
  },
  commented: (_, who, task) => [who, " commented on ", task],
  archived: (_, who, task) => [who, " archived ", task],
  unarchived: (_, who, task) => [who, " unarchived ", task],
  hook_delivered: (event, _, task) => ["Hook delivered for ", task, ` (${event.data.told})`],
  hook_failed: (event, _, task) => ["Hook failed for ", task, event.data.error ? `: ${event.data.error}` : ""],
};

/** A duration that stays on one line. */
function length(ms) {
  return duration(ms).replaceAll(" ", "\u00a0");
}

function name(text) {
  return h("b", { class: "who", dir: "auto" }, quotedName(text));
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
  return queue && queue !== "default" ? [" to ", h("bdi", {}, quotedName(queue))] : [];
}

function waiting(event) {
  const count = changed(event, "blocked_by")?.to?.length ?? 0;
  return count ? [` (depends on ${count === 1 ? "1 task" : `${count} tasks`})`] : [];
}

function listed(words) {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

function shortened(text, length) {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}
