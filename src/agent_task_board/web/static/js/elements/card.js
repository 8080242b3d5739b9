/** One task on the board. */

import { avatar } from "../people.js";
import { fill, h, icon } from "../dom.js";
import { quotedName } from "../printable.js";
import { router } from "../router.js";
import { search } from "../search.js";
import { column, columnEntry, isFinal, isHeld, shortId } from "../status.js";
import { lease, store } from "../store.js";
import { waitsFor } from "../stuck.js";
import { duration, exact, relative, short, stamp } from "../time.js";

const DAY = 24 * 3600 * 1000;
const TAGS_SHOWN = 3;

/** A list item covered by its link. It shows `task` and data from the store. */
export class Card extends HTMLElement {
  task = null;
  #link = h("a", { class: "card-link", dir: "auto" });
  #top = h("div", { class: "card-top" });
  #marks = h("ul", { class: "card-marks" });
  #body = h("div", { class: "card-body" });
  #lease = null;
  #title = null;

  connectedCallback() {
    if (this.childElementCount) return;
    this.setAttribute("role", "listitem");
    this.append(this.#top, h("h3", { class: "card-title" }, this.#link), this.#marks, this.#body);
  }

  /** The link that opens the task; keyboard navigation focuses it. */
  get link() {
    return this.#link;
  }

  /** Shows the current state of the task. */
  show(task) {
    this.task = task;
    const held = isHeld(task);
    this.className = `card ${columnEntry(column(task)).css}`;
    this.dataset.id = task.id;
    if (this.#title !== task.title) fill(this.#link, (this.#title = task.title));
    this.updateLink();
    fill(this.#top, h("span", { class: "card-id mono" }, shortId(task.id)), h("bdi", { class: "card-queue truncate", title: `Queue: ${task.queue}` }, task.queue), priority(task.priority));
    const marks = marksOf(task);
    fill(this.#marks, marks);
    this.#marks.hidden = !marks.length;
    fill(this.#body, held ? holder(task) : assigneeOrLastHolder(task), held && progress(task), found(task) || (held && note(task)) || returnNote(task), task.status === "failed" && failure(task), held && this.#createLease());
    this.#body.hidden = !this.#body.childElementCount;
    if (held) this.tick();
    else {
      this.#lease = null;
      delete this.dataset.lease;
    }
  }

  /** Updates the link, which includes the filters of the current URL. */
  updateLink() {
    this.#link.setAttribute("href", router.href({ task: this.task.id, new: "" }));
  }

  /** Marks a card that just changed. */
  flash() {
    this.classList.remove("is-fresh");
    requestAnimationFrame(() => this.classList.add("is-fresh"));
  }

  /** Updates the lease, once a second: the time left, and whether the holder is silent. */
  tick() {
    if (!this.#lease) return;
    const { bar, text } = this.#lease;
    const state = lease(this.task);
    bar.style.transform = `scaleX(${state.fraction.toFixed(4)})`;
    const mood = state.expired ? "expired" : state.silent ? "silent" : "live";
    const words = state.expired ? `Expired ${duration(-state.left)} ago` : state.silent ? `Silent for ${duration(state.silentFor)}` : "";
    this.dataset.lease = mood;
    text.hidden = !words;
    if (text.textContent !== words) fill(text, icon("silent"), h("span", null, words));
    this.#lease.track.title = `${state.expired ? "Lease ended" : "Lease ends"} ${relative(this.task.lease_expires_at)}: ${exact(this.task.lease_expires_at)}`;
    this.#lease.spoken.textContent = state.expired ? "" : `Lease: ${duration(state.left)} left`;
  }

  #createLease() {
    const bar = h("span", { class: "lease-left" });
    const spoken = h("span", { class: "visually-hidden" });
    const track = h("div", { class: "lease" }, bar, spoken);
    const text = h("p", { class: "card-silent", title: "No heartbeat for more than two thirds of the lease" });
    this.#lease = { bar, spoken, track, text };
    return [text, track];
  }
}

function priority(value) {
  if (!value) return null;
  return h("span", { class: `card-priority ${value < 0 ? "is-low" : ""}`, title: `Priority: ${value}` }, icon("priority"), h("span", { class: "visually-hidden" }, "Priority "), value);
}

function marksOf(task) {
  const marks = [];
  const open = task.status === "queued" && task.blocked ? openDependencies(task) : [];
  const back = store.returned[task.id];
  if (back) marks.push(mark("return", ["Returned by ", h("bdi", {}, quotedName(back.by)), back.imported ? " (imported)" : ""], "chip chip-warning", back.note ?? ""));
  if (task.stuck) marks.push(stuckMark(task));
  else if (open.length) marks.push(waiting(open));
  if (task.due_at && !isFinal(task)) marks.push(deadline(task));
  if (task.delayed) marks.push(mark("delayed", `Not before ${short(task.not_before)}`, "", exact(task.not_before)));
  if (task.needs_approval && !isFinal(task) && task.status !== "review") marks.push(mark("review", "Needs approval", "", "A person must approve the result"));
  if (task.attempts > 0 && (task.status !== "done" || task.attempts > 1)) marks.push(attempts(task));
  for (const tag of task.tags.slice(0, TAGS_SHOWN)) marks.push(h("li", { class: "card-tag", dir: "auto", title: tag }, tag));
  if (task.tags.length > TAGS_SHOWN) marks.push(h("li", { class: "card-tag", title: task.tags.slice(TAGS_SHOWN).join(", ") }, `+${task.tags.length - TAGS_SHOWN}`));
  return marks;
}

/** The dependencies that are not done. A dependency that the board does not show counts as open, unless the board is truncated. */
function openDependencies(task) {
  return task.blocked_by.filter((id) => store.task(id)?.status !== "done" && (store.task(id) || !store.truncated));
}

function waiting(open) {
  const titles = open.map((id) => store.task(id)?.title ?? shortId(id));
  const text = titles.length > 1 ? `${titles.length} tasks` : h("bdi", {}, titles[0]);
  return mark("link", ["Waiting for ", text], "chip chip-status", titles.join("\n"));
}

function stuckMark(task) {
  return mark("warning", waitsFor(store.stuck[task.id], "Waits"), "chip chip-danger", "Retry that task, drop the dependency, or cancel this task");
}

function attempts(task) {
  const last = task.attempts >= task.max_attempts && task.status !== "done";
  return mark("attempts", `${task.attempts}/${task.max_attempts}`, last ? "chip chip-warning" : "", `${task.attempts} of ${task.max_attempts} attempts used`);
}

function deadline(task) {
  const left = Date.parse(task.due_at) - Date.now();
  const mood = task.overdue ? "chip chip-danger" : left < DAY ? "chip chip-warning" : "";
  const text = task.overdue ? `Overdue by ${duration(-left)}` : left < DAY ? `Due in ${duration(left)}` : `Due ${short(task.due_at)}`;
  return mark("deadline", text, mood, `Due ${exact(task.due_at)}`);
}

function mark(symbol, text, mood, title) {
  return h("li", { class: `card-mark ${mood}`, title }, icon(symbol), h("span", { class: "truncate" }, text));
}

function holder(task) {
  return h("p", { class: "card-holder" }, avatar(task.claimed_by), h("bdi", { class: "card-agent truncate" }, quotedName(task.claimed_by)), stamp(task.claimed_at, { elapsed: true }));
}

/** The assignee of a queued task; otherwise the last holder and the time. */
function assigneeOrLastHolder(task) {
  if (task.status === "queued") {
    if (!task.assignee) return null;
    return h("p", { class: "card-holder is-assigned" }, avatar(task.assignee), h("span", { class: "card-agent truncate" }, h("span", { class: "card-for" }, "for "), h("bdi", {}, quotedName(task.assignee))));
  }
  const at = task.finished_at ?? task.updated_at;
  return h("p", { class: "card-holder" }, task.claimed_by && avatar(task.claimed_by), h("bdi", { class: "card-agent truncate" }, task.claimed_by ? quotedName(task.claimed_by) : ""), stamp(at, { relative: true }));
}

function progress(task) {
  if (task.progress === null) return null;
  const bar = h("span", { class: "progress-done" });
  bar.style.width = `${task.progress}%`;
  return h("div", { class: "card-progress" }, h("div", { class: "progress", role: "progressbar", "aria-label": "Progress", "aria-valuenow": task.progress, "aria-valuemin": 0, "aria-valuemax": 100 }, bar), h("span", { class: "progress-number" }, `${task.progress}%`));
}

function note(task) {
  const hold = store.holds.get(task.id);
  if (!hold?.note || hold.agent.toLowerCase() !== task.claimed_by.toLowerCase()) return null;
  return h("p", { class: "card-note", dir: "auto", title: hold.note }, hold.note);
}

/** Why a search has found the task, where its title does not say it. */
function found(task) {
  const text = search.snippet(task.id);
  return text ? h("p", { class: "card-note card-found", dir: "auto", title: text }, text) : null;
}

function returnNote(task) {
  const text = store.returned[task.id]?.note;
  return text ? h("p", { class: "card-note", dir: "auto", title: text }, text) : null;
}

function failure(task) {
  return task.error ? h("p", { class: "card-error", dir: "auto", title: task.error }, task.error) : null;
}

customElements.define("atb-card", Card);
