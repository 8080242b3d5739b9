/** The main column of a task: description, result, artifacts, params, dependencies and attempts. */

import { copyButton } from "../copy-button.js";
import { h, icon } from "../dom.js";
import { jsonView } from "../json-view.js";
import { LastValues, swap } from "../live-part.js";
import { markdown } from "../markdown.js";
import { nameplate } from "../people.js";
import { quotedName } from "../printable.js";
import { router } from "../router.js";
import { importedMark } from "../sentences.js";
import { isFinal, shortId, statusOf } from "../status.js";
import { waitsFor } from "../stuck.js";
import { duration, stamp } from "../time.js";

const SHOWN = 10; // entries of a list shown at first

const OUTCOMES = {
  completed: { label: "Completed", icon: "done", css: "is-done" },
  returned: { label: "Returned", icon: "return", css: "is-review" },
  failed: { label: "Failed", icon: "failed", css: "is-failed" },
  expired: { label: "Lease expired", icon: "silent", css: "is-failed" },
  released: { label: "Released", icon: "return", css: "is-queued" },
  handed_off: { label: "Handed off", icon: "reassign", css: "is-progress" },
  revoked: { label: "Revoked", icon: "reassign", css: "is-blocked" },
  cancelled: { label: "Cancelled", icon: "cancelled", css: "is-cancelled" },
};

/** Set the `data` of GET /api/tasks/ID with `show(details)`; only changed parts are redrawn. */
export class TaskSections extends HTMLElement {
  #parts = {};
  #lastValues = new LastValues();

  connectedCallback() {
    for (const name of ["returned", "stuck", "why", "error", "body", "result", "artifacts", "params", "links", "attempts"]) {
      this.#parts[name] = this.appendChild(h("div", { class: `part part-${name}` }));
    }
  }

  show({ task, attempts, dependencies, dependents, returned, stuck_by: stuckBy, why }) {
    this.#draw("returned", returned, () => returned && sentBack(returned));
    this.#draw("stuck", stuckBy, () => stuckBy && stuck(stuckBy));
    const waits = task.status === "queued" && !stuckBy && why;
    this.#draw("why", waits, () => waits && h("p", { class: "soft" }, ...withStamps(waits)));
    this.#draw("error", [task.error, task.status], () => task.error && problem(task));
    this.#draw("body", task.body, () => section("Description", description(task.body)));
    this.#draw("result", task.result, () => task.result !== null && section("Result", result(task.result)));
    this.#draw("artifacts", task.artifacts, () => task.artifacts.length > 0 && section("Artifacts", artifacts(task.artifacts)));
    this.#draw("params", task.params, () => Object.keys(task.params).length > 0 && section("Params", jsonView(task.params, { label: "params" })));
    this.#draw("links", [dependencies, dependents], () => [
      dependencies.length > 0 && section("Depends on", links(dependencies)),
      dependents.length > 0 && section("Needed by", links(dependents)),
    ]);
    this.#draw("attempts", [attempts, task.lease_expired, task.result], () => attempts.length > 0 && section("Attempts", attemptList(attempts, task)));
  }

  /** Forgets the shown task, so that the next one is drawn in full. */
  clear() {
    this.#lastValues = new LastValues();
    for (const part of Object.values(this.#parts)) part.replaceChildren();
  }

  #draw(name, value, create) {
    if (!this.#lastValues.changed(name, value)) return;
    const content = create();
    swap(this.#parts[name], content || null);
    this.#parts[name].hidden = !this.#parts[name].hasChildNodes();
  }
}

function section(title, ...content) {
  return h("section", {}, h("h3", { class: "part-title" }, title), ...content);
}

function description(body) {
  return body.trim() ? h("div", { class: "prose" }, markdown(body)) : h("p", { class: "soft" }, "No description.");
}

/** Who rejected the work, and the note. */
function sentBack({ by, at, note, imported }) {
  return h("section", { class: "problem is-past" },
    h("h3", { class: "part-title" }, icon("return"), "Returned by ", h("bdi", {}, quotedName(by)), " ", stamp(at, { relative: true }), imported ? [" ", importedMark()] : null),
    note && h("div", { class: "prose" }, markdown(note)));
}

function stuck(by) {
  return h("section", { class: "problem" },
    h("h3", { class: "part-title" }, icon("warning"), "Stuck"),
    h("p", {}, ...waitsFor(by, "Waits"), ". Retry that task, drop the dependency, or cancel this task."),
    taskRow(by));
}

/** A sentence of the board as words, and its instants as times of the reader. */
function withStamps(sentence) {
  return sentence.split(/(\d{4}-\d\d-\d\dT[\d:.]+\+00:00)/).map((part, at) =>
    at % 2 ? stamp(part, { relative: true }) : h("bdi", {}, at ? part : part.charAt(0).toUpperCase() + part.slice(1)));
}

/** The last error: prominent while the task is failed, subdued otherwise. */
function problem(task) {
  const loud = task.status === "failed";
  const text = h("pre", { class: "problem-text", dir: "auto", tabIndex: 0, role: "region", "aria-label": "Error" }, task.error);
  return h("section", { class: loud ? "problem" : "problem is-past" },
    h("h3", { class: "part-title" }, loud ? icon("failed") : null, loud || isFinal(task) ? "Error" : "Error from the previous attempt"),
    text);
}

/** Strings as Markdown, everything else as a JSON tree. */
function result(value) {
  return typeof value === "string" ? h("div", { class: "prose" }, markdown(value)) : jsonView(value, { label: "result" });
}

function artifacts(paths) {
  return longList("ul", "artifacts", paths, (path) =>
    h("li", { tabIndex: -1 }, h("bdi", { class: "mono" }, path), copyButton(() => path, `Copy path ${path}`)));
}

function links(tasks) {
  return longList("ul", "task-links", tasks, (task) => h("li", { tabIndex: -1 }, taskRow(task)));
}

function attemptList(attempts, task) {
  return longList("ol", "attempts", [...attempts].reverse(), (attempt) => attemptItem(attempt, task));
}

/** The first entries of a list, and a button for the others. */
function longList(tag, css, items, create) {
  const list = h(tag, { class: css }, items.slice(0, SHOWN).map(create));
  const left = items.length - SHOWN;
  if (left <= 0) return list;
  const more = h("button", { type: "button", class: "button" }, `Show ${left} more`);
  more.addEventListener("click", () => {
    for (const item of items.slice(SHOWN)) list.append(create(item));
    more.remove();
    list.children[SHOWN].focus();
  });
  return [list, more];
}

/** A link to a task with its status and short id. */
export function taskRow(task) {
  const { label, icon: name, css } = statusOf(task);
  return h("a", { class: `task-row ${css}`, href: router.href({ task: task.id, new: "" }) },
    icon(name, label), h("span", { class: "task-row-title", dir: "auto" }, task.title), h("span", { class: "mono soft" }, shortId(task.id)));
}

function attemptItem(attempt, task) {
  const open = task.lease_expired ? OUTCOMES.expired : { label: "In progress", icon: "running", css: "is-progress" };
  const { label, icon: name, css } = OUTCOMES[attempt.returned ? "returned" : attempt.outcome] ?? open;
  const isOwn = attempt.result !== null && JSON.stringify(attempt.result) !== JSON.stringify(task.result);
  const length = attempt.ended_at ? duration(Date.parse(attempt.ended_at) - Date.parse(attempt.claimed_at)) : stamp(attempt.claimed_at, { elapsed: true });
  return h("li", { class: "attempt", tabIndex: -1 },
    h("div", { class: "attempt-line" },
      h("span", { class: "attempt-number" }, h("span", { class: "visually-hidden" }, "Attempt "), String(attempt.number)),
      nameplate(attempt.agent),
      h("span", { class: `chip chip-status ${css}` }, icon(name), label),
      h("span", { class: "soft" }, attempt.ended_at ? "after " : "for ", length),
      h("span", { class: "soft attempt-when" }, stamp(attempt.claimed_at, { relative: true }))),
    attempt.note && h("div", { class: "prose attempt-words" }, markdown(attempt.note)),
    attempt.error && h("p", { class: "attempt-words attempt-error", dir: "auto" }, attempt.error),
    attempt.output && h("details", { class: "attempt-words" },
      h("summary", {}, "Output"),
      h("pre", { class: "problem-text", dir: "auto", tabIndex: 0, role: "region", "aria-label": `Output of attempt ${attempt.number}` }, attempt.output)),
    isOwn && h("details", { class: "attempt-words" }, h("summary", {}, "Result of this attempt"), result(attempt.result)));
}

customElements.define("atb-task-sections", TaskSections);
