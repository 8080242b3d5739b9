/** The side column of a task: its fields at a glance. */

import { copyButton } from "../copy-button.js";
import { h, icon } from "../dom.js";
import { swap } from "../live-part.js";
import { nameplate } from "../people.js";
import { isFinal, isHeld, statusOf } from "../status.js";
import { lease, store } from "../store.js";
import { duration, everySecond, short, stamp } from "../time.js";

/** Set the task with `show(task)`. */
export class TaskFacts extends HTMLElement {
  #task = null;
  #stop = null;

  connectedCallback() {
    this.#stop = everySecond(() => this.#tick());
  }

  disconnectedCallback() {
    this.#stop?.();
  }

  /** Shows the fields of a task; the details stay open or closed. */
  show(task) {
    const fold = this.querySelector("details");
    const open = fold ? fold.open : !matchMedia("(max-width: 759px)").matches;
    this.#task = task;
    swap(this, h("div", { class: "facts-column" },
      h("h3", { class: "visually-hidden" }, "Fields"),
      list(now(task)),
      h("details", { class: "facts-record", open }, h("summary", {}, "More details"), list(record(task)))));
    this.#tick();
  }

  /** Updates the time left of the lease, without data from the server. */
  #tick() {
    const row = this.querySelector(".facts-lease");
    const left = this.#task && row && lease(this.#task);
    if (!left) return;
    row.classList.toggle("is-silent", left.silent);
    row.classList.toggle("is-expired", left.expired);
    row.querySelector(".facts-left").textContent = left.expired ? `expired ${duration(-left.left)} ago` : `${duration(left.left)} left`;
    row.querySelector(".facts-bar").style.setProperty("--part", String(left.fraction));
    row.querySelector(".facts-silent").hidden = !left.silent || left.expired;
    row.querySelector(".facts-silent-for").textContent = `silent for ${duration(left.silentFor)}`;
  }
}

/** The fields that matter most. */
function now(task) {
  return [
    ["Status", status(task)],
    [isHeld(task) ? "Holder" : "Last holder", task.claimed_by && holder(task)],
    ["Lease", isHeld(task) && leaseRow(task)],
    ["Progress", isHeld(task) && task.progress !== null && progress(task.progress)],
    ["Assignee", task.assignee ? nameplate(task.assignee) : soft("any agent")],
    ["Queue", isolated(task.queue)],
    ["Priority", String(task.priority)],
    ["Attempts", `${task.attempts} of ${task.max_attempts}`],
    ["Runtime limit", task.max_runtime !== null && duration(task.max_runtime * 1000)],
    ["Approval", task.needs_approval && "required"],
    ["Deadline", task.due_at && deadline(task)],
    ["Not before", task.status === "queued" && task.not_before && when(task.not_before)],
    ["Tags", task.tags.length > 0 && h("span", { class: "facts-tags" }, ...task.tags.map((tag) => h("span", { class: "chip", dir: "auto" }, tag)))],
  ];
}

/** Fields for reference. */
function record(task) {
  return [
    ["ID", h("span", { class: "facts-id" }, h("span", { class: "mono" }, task.id), copyButton(() => task.id, "Copy ID"))],
    ["Created by", nameplate(task.created_by, store.agents.has(task.created_by) ? "agent" : "person")],
    ["Created", when(task.created_at)],
    ["Updated", when(task.updated_at)],
    ["Finished", task.finished_at && when(task.finished_at)],
    ["Dedupe key", task.dedupe_key && isolated(task.dedupe_key)],
    ["Schedule", task.schedule_id && isolated(task.schedule_id)],
    ["Occurrence", task.occurrence_at && when(task.occurrence_at)],
    ["Fence", String(task.fence)],
    ["Version", String(task.version)],
  ];
}

function list(rows) {
  const shown = rows.filter(([, value]) => value);
  return h("dl", { class: "facts" }, ...shown.map(([label, value]) => h("div", { class: "fact" }, h("dt", {}, label), h("dd", {}, value))));
}

/** The status as a chip, for a task or a bare {status}. */
export function status(task) {
  const { label, icon: name, css } = statusOf(task);
  return h("span", { class: `chip chip-status ${css}` }, icon(name), label);
}

function holder(task) {
  return h("span", { class: "facts-holder" }, nameplate(task.claimed_by), task.claimed_at && h("span", { class: "soft" }, stamp(task.claimed_at, isHeld(task) ? { elapsed: true, prefix: "for " } : { relative: true, prefix: "claimed " })));
}

function leaseRow(task) {
  return h("span", { class: "facts-lease" },
    h("span", { class: "facts-bar", "aria-hidden": "true" }),
    h("time", { class: "facts-left", dateTime: task.lease_expires_at, title: stamp(task.lease_expires_at).title }),
    h("span", { class: "facts-silent", hidden: true }, icon("silent"), h("span", { class: "facts-silent-for" })));
}

function progress(percent) {
  const bar = h("span", { class: "facts-bar", "aria-hidden": "true" });
  bar.style.setProperty("--part", String(percent / 100));
  return h("span", { class: "facts-progress" }, bar, `${percent} %`);
}

function deadline(task) {
  const late = task.overdue && !isFinal(task);
  return h("span", { class: "facts-when" }, late && h("span", { class: "chip chip-danger" }, icon("deadline"), "Overdue"), when(task.due_at));
}

function when(iso) {
  return h("span", { class: "facts-when" }, stamp(iso, { relative: true }), h("span", { class: "soft" }, short(iso)));
}

function isolated(text) {
  return h("bdi", {}, text);
}

function soft(text) {
  return h("span", { class: "soft" }, text);
}

customElements.define("atb-task-facts", TaskFacts);
