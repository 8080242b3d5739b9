/** The columns: groups and orders the tasks, owns the cards, updates only cards that changed. */

import { copyButton } from "../copy-button.js";
import { fill, h, icon } from "../dom.js";
import { isFiltered, predicate } from "../filters.js";
import { FILTERS, router } from "../router.js";
import { search } from "../search.js";
import { signInForm } from "../session.js";
import { COLUMNS, column, isFinal, isHeld } from "../status.js";
import { store } from "../store.js";
import { everySecond } from "../time.js";
import "./card.js";
import "./column.js";

const EMPTY = {
  queued: "No queued tasks.",
  blocked: "No blocked tasks.",
  in_progress: "No agent is working on a task.",
  review: "No tasks to review.",
  done: "No tasks done yet.",
  failed: "No failed tasks.",
  cancelled: "No cancelled tasks.",
};

/** The order within each column; equal tasks keep the server's order. */
const ORDERS = {
  queued: (a, b) => a.delayed - b.delayed || b.priority - a.priority,
  blocked: (a, b) => b.priority - a.priority,
  in_progress: (a, b) => b.lease_expired - a.lease_expired || ascending(a.claimed_at, b.claimed_at),
  review: (a, b) => b.priority - a.priority || ascending(a.updated_at, b.updated_at),
  done: (a, b) => ascending(b.finished_at, a.finished_at),
  failed: (a, b) => ascending(b.finished_at, a.finished_at),
  cancelled: (a, b) => ascending(b.finished_at, a.finished_at),
};

/** Seven columns, a tab bar for phones, and a message if there is nothing to show. */
export class BoardView extends HTMLElement {
  #cards = new Map();
  #columns = new Map();
  #tabs = new Map();
  #tabBar = h("nav", { class: "tabs", "aria-label": "Columns" });
  #grid = h("div", { class: "columns" });
  #message = h("div", { class: "board-message", hidden: true });
  #truncated = h("p", { class: "board-notice", hidden: true });
  #shownTab = "";
  #messageKind = "";

  connectedCallback() {
    if (this.childElementCount) return;
    for (const entry of COLUMNS) {
      const element = document.createElement("atb-column").setup(entry, this);
      this.#columns.set(entry.name, element);
      this.#grid.append(element);
      this.#tabBar.append(this.#createTab(entry));
    }
    this.append(this.#message, this.#truncated, this.#grid, this.#tabBar);
    store.addEventListener("tasks", ({ detail }) => this.#changed(detail));
    store.addEventListener("agents", ({ detail }) => this.#redraw(detail.changed));
    for (const event of ["online", "settings"]) store.addEventListener(event, () => this.#showMessage());
    router.addEventListener("route", ({ detail }) => this.#routed(detail.previous));
    search.addEventListener("found", () => this.#found());
    everySecond(() => {
      for (const card of this.#cards.values()) if (isHeld(card.task)) card.tick();
    });
    this.#showMessage();
  }

  /** The card of a task, created on first use. */
  card(task) {
    let card = this.#cards.get(task.id);
    if (!card) {
      card = document.createElement("atb-card");
      card.show(task);
      this.#cards.set(task.id, card);
    }
    return card;
  }

  /** Removes a card from the board. */
  drop(card) {
    this.#cards.delete(card.task.id);
    card.remove();
  }

  /** Moves the focus by `down` cards within a column, or by `right` columns. */
  moveFocus(down, right) {
    const columns = [...this.#columns.values()].filter((element) => element.offsetParent && element.cards.length);
    if (!columns.length) return;
    const at = columns.findIndex((element) => element.contains(document.activeElement));
    if (at < 0) {
      focus(columns[0].cards[0]);
      return;
    }
    const { cards } = columns[at];
    const row = cards.findIndex((card) => card.contains(document.activeElement));
    if (down) focus(cards[Math.min(cards.length - 1, Math.max(0, row + down))]);
    else focus(cardBeside(columns[Math.min(columns.length - 1, Math.max(0, at + right))], cards[row]));
  }

  #changed({ changed, before, first }) {
    const touched = new Set(changed);
    for (const id of changed) for (const dependent of store.dependents(id)) touched.add(dependent);
    this.#redraw(touched);
    this.#arrange(false);
    if (!first) for (const id of changed) if (before.get(id)?.version !== store.task(id).version) this.#cards.get(id)?.flash();
    this.#showMessage();
  }

  /** Redraws the cards of these tasks, if they have any. */
  #redraw(ids) {
    for (const id of ids) {
      const card = this.#cards.get(id);
      const task = store.task(id);
      if (card && task) card.show(task);
    }
  }

  /** Shows what the server found, and on each card why. */
  #found() {
    if (!store.loaded) return;
    this.#redraw(this.#cards.keys());
    this.#arrange(false);
  }

  #routed(previous) {
    const { state } = router;
    const filtered = FILTERS.some((key) => state[key] !== previous[key]);
    if (filtered && store.loaded) this.#arrange(true);
    for (const card of this.#cards.values()) card.updateLink();
  }

  /** Groups the matching tasks and passes them to the columns. */
  #arrange(restart) {
    const passes = predicate();
    const groups = new Map(COLUMNS.map(({ name }) => [name, []]));
    let shown = 0;
    for (const task of store.sorted) {
      if (!passes(task)) continue;
      groups.get(column(task)).push(task);
      shown += 1;
    }
    const filtered = isFiltered();
    for (const [name, tasks] of groups) {
      tasks.sort(ORDERS[name]);
      const all = store.truncated && !filtered && isFinal({ status: name }) ? (store.counts[name] ?? 0) : 0;
      const count = Math.max(tasks.length, all).toLocaleString("en");
      this.#columns.get(name).show(tasks, { count, empty: filtered ? "No matching tasks." : EMPTY[name], restart });
      this.#tabs.get(name).count.textContent = count;
    }
    for (const element of this.#columns.values()) element.trim();
    const bar = document.querySelector("atb-filters");
    if (bar) bar.count = { shown, total: store.sorted.length };
    if (!this.#shownTab) this.#showTab(groups.get("in_progress").length ? "in_progress" : (COLUMNS.find(({ name }) => groups.get(name).length)?.name ?? "queued"));
  }

  #createTab(entry) {
    const count = h("span", { class: "tab-count" });
    const tab = h("button", { class: `tab ${entry.css}`, type: "button", "aria-pressed": "false", on: { click: () => this.#showTab(entry.name) } }, icon(entry.icon), count, h("span", { class: "tab-label" }, entry.label));
    this.#tabs.set(entry.name, { tab, count });
    return tab;
  }

  /** Selects the column that phones show. Wider screens show all columns and no tabs. */
  #showTab(name) {
    this.#shownTab = name;
    for (const [other, { tab }] of this.#tabs) tab.setAttribute("aria-pressed", String(other === name));
    for (const [other, element] of this.#columns) element.classList.toggle("is-shown", other === name);
  }

  #showMessage() {
    const { failure, loaded, online } = store;
    const kind = failure ? `unusable ${failure.message}` : !loaded ? (online ? "" : "unreachable") : store.sorted.length ? "" : `empty ${store.readOnly} ${store.dataDir} ${store.warnings}`;
    this.#truncated.hidden = !store.truncated || Boolean(kind);
    if (store.truncated) this.#truncated.textContent = `Showing only ${store.sorted.length.toLocaleString("en")} tasks, unfinished ones first. To see older finished tasks, run: atb list --status done`;
    if (kind === this.#messageKind) return;
    this.#messageKind = kind;
    this.#message.hidden = !kind;
    this.#grid.hidden = this.#tabBar.hidden = Boolean(kind);
    if (kind) fill(this.#message, failure ? unusable(failure) : loaded ? emptyBoard() : unreachable());
    document.querySelector("atb-filters")?.toggleAttribute("inert", Boolean(kind));
  }
}

function ascending(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

function focus(card) {
  card?.link.focus();
  card?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

/** The card of a column at the same height as another card. */
function cardBeside(element, beside) {
  const top = beside.getBoundingClientRect().top;
  return element.cards.find((card) => card.getBoundingClientRect().bottom > top) ?? element.cards.at(-1);
}

function emptyBoard() {
  return [
    icon("board"),
    h("h2", null, "No tasks yet"),
    store.warnings.map((warning) => h("p", { class: "board-warning" }, `${warning}.`)),
    h("p", null, "New tasks appear here automatically. Add the first one from a shell:"),
    command(`atb add "Write the parser" --priority 5${store.dataDir && ` --data-dir '${store.dataDir.replaceAll("'", "'\\''")}'`}`),
    store.readOnly ? null : h("p", null, "Or ", h("a", { href: router.href({ new: "1" }) }, "add a task here"), " (press ", h("kbd", null, "n"), ")."),
  ];
}

function command(text) {
  return h("div", { class: "board-command" }, h("pre", null, h("code", null, text)), copyButton(() => text, "Copy command"));
}

function unusable(failure) {
  if (failure.status === 401) {
    return [icon("board"), h("h2", null, "Sign in"), h("p", null, "Run this in a terminal on the machine of the board, and open the link that it prints:"), command("atb open"), signInForm()];
  }
  return [icon("warning"), h("h2", null, "Cannot show the board"), h("p", { role: "alert" }, failure.message), failure.hint ? h("p", { class: "hint" }, failure.hint) : null];
}

function unreachable() {
  return [icon("warning"), h("h2", null, "The server is not responding"), h("p", { role: "alert" }, "This page reconnects automatically. If the server is not running, start it:"), command("atb serve")];
}

customElements.define("atb-board", BoardView);
