/** The main column's reading parts: what is to be done, what came of it, what it hangs on, who tried. */

import { copyButton } from "../copy-button.js";
import { h, icon } from "../dom.js";
import { jsonView } from "../json-view.js";
import { Seen, swap } from "../live-part.js";
import { markdown } from "../markdown.js";
import { nameplate } from "../people.js";
import { router } from "../router.js";
import { isFinal, shortId, statusOf } from "../status.js";
import { duration, stamp } from "../time.js";

const SHOWN = 10; // entries of a list until the rest is asked for

const OUTCOMES = {
  completed: { label: "Completed", icon: "done", css: "is-done" },
  failed: { label: "Failed", icon: "failed", css: "is-failed" },
  expired: { label: "Lease expired", icon: "silent", css: "is-failed" },
  released: { label: "Put back", icon: "return", css: "is-queued" },
  handed_off: { label: "Handed off", icon: "reassign", css: "is-progress" },
  revoked: { label: "Revoked", icon: "reassign", css: "is-blocked" },
  cancelled: { label: "Cancelled", icon: "cancelled", css: "is-cancelled" },
};

/** Give it what GET /api/tasks/ID answered with `show(details)`: only the parts that changed are drawn anew. */
export class TaskSections extends HTMLElement {
  #parts = {};
  #seen = new Seen();

  connectedCallback() {
    for (const name of ["error", "body", "result", "artifacts", "params", "links", "attempts"]) {
      this.#parts[name] = this.appendChild(h("div", { class: `part part-${name}` }));
    }
  }

  show({ task, attempts, dependencies, dependents }) {
    this.#draw("error", [task.error, task.status], () => task.error && problem(task));
    this.#draw("body", task.body, () => section("Description", description(task.body)));
    this.#draw("result", task.result, () => task.result !== null && section("Result", result(task.result)));
    this.#draw("artifacts", task.artifacts, () => task.artifacts.length > 0 && section("Artifacts", artifacts(task.artifacts)));
    this.#draw("params", task.params, () => Object.keys(task.params).length > 0 && section("Params", jsonView(task.params, { label: "the params" })));
    this.#draw("links", [dependencies, dependents], () => [
      dependencies.length > 0 && section("Waits for", links(dependencies)),
      dependents.length > 0 && section("Is waited for by", links(dependents)),
    ]);
    this.#draw("attempts", [attempts, task.lease_expired, task.result], () => attempts.length > 0 && section("Attempts", tries(attempts, task)));
  }

  /** Forgets the task shown, so that the next one is drawn in full. */
  clear() {
    this.#seen = new Seen();
    for (const part of Object.values(this.#parts)) part.replaceChildren();
  }

  #draw(name, value, make) {
    if (!this.#seen.changed(name, value)) return;
    const made = make();
    swap(this.#parts[name], made || null);
    this.#parts[name].hidden = !this.#parts[name].hasChildNodes();
  }
}

function section(title, ...content) {
  return h("section", {}, h("h3", { class: "part-title" }, title), ...content);
}

function description(body) {
  return body.trim() ? h("div", { class: "prose" }, markdown(body)) : h("p", { class: "soft" }, "No description.");
}

/** The error of the last attempt: loud while it matters, quiet once the task went on. */
function problem(task) {
  const loud = task.status === "failed";
  const text = h("pre", { class: "problem-text", dir: "auto", tabIndex: 0, role: "region", "aria-label": "Error" }, task.error);
  return h("section", { class: loud ? "problem" : "problem is-past" },
    h("h3", { class: "part-title" }, loud ? icon("failed") : null, loud || isFinal(task) ? "Error" : "Error of the attempt before"),
    text);
}

/** Prose as prose, everything else as a tree. */
function result(value) {
  return typeof value === "string" ? h("div", { class: "prose" }, markdown(value)) : jsonView(value, { label: "the result" });
}

function artifacts(paths) {
  return longList("ul", "artifacts", paths, (path) =>
    h("li", { tabIndex: -1 }, h("bdi", { class: "mono" }, path), copyButton(() => path, `Copy the path ${path}`)));
}

function links(tasks) {
  return longList("ul", "task-links", tasks, (task) => h("li", { tabIndex: -1 }, taskRow(task)));
}

function tries(attempts, task) {
  return longList("ol", "attempts", [...attempts].reverse(), (attempt) => one(attempt, task));
}

/** A list of its first entries, and a button for the others. */
function longList(tag, css, items, make) {
  const list = h(tag, { class: css }, items.slice(0, SHOWN).map(make));
  const left = items.length - SHOWN;
  if (left <= 0) return list;
  const more = h("button", { type: "button", class: "button" }, `Show ${left} more`);
  more.addEventListener("click", () => {
    for (const item of items.slice(SHOWN)) list.append(make(item));
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

function one(attempt, task) {
  const open = task.lease_expired ? OUTCOMES.expired : { label: "At work", icon: "running", css: "is-progress" };
  const { label, icon: name, css } = OUTCOMES[attempt.outcome] ?? open;
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
    isOwn && h("details", { class: "attempt-words" }, h("summary", {}, "Result of this attempt"), result(attempt.result)));
}

customElements.define("atb-task-sections", TaskSections);
