/** The filter bar and the predicate that it sets. The URL holds the filters. */

import { fill, h, icon } from "./dom.js";
import { FILTERS, router } from "./router.js";
import { search } from "./search.js";
import { store } from "./store.js";

const TYPING_PAUSE = 80;
const CHOICES_PAUSE = 2000;
const searchTexts = new WeakMap();

/** Whether any filter is set. */
export function isFiltered(state = router.state) {
  return FILTERS.some((key) => state[key]);
}

/** A function that returns whether a task passes the filters of `state`. */
export function predicate(state = router.state) {
  const { queue, tag, overdue } = state;
  const agent = state.agent.toLowerCase();
  const words = folded(state.q).split(/[\s"]+/).filter(Boolean);
  return (task) =>
    (!queue || task.queue === queue) &&
    (!tag || task.tags.includes(tag)) &&
    (!overdue || task.overdue) &&
    (!agent || belongsTo(task, agent)) &&
    (!state.q || (search.has(state.q, task.id) ?? contains(task, words)));
}

/** Like the server, upper and lower case and all spellings of a letter are equal. */
function folded(text) {
  return text.normalize("NFD").toLowerCase().replaceAll("ς", "σ").normalize("NFC");
}

function belongsTo(task, agent) {
  return task.claimed_by?.toLowerCase() === agent || task.assignee?.toLowerCase() === agent;
}

/** Whether every word occurs in the title, id, tags or error: what the page has before the server answers, or offline. */
function contains(task, words) {
  let text = searchTexts.get(task);
  if (text === undefined) {
    text = folded([task.title, task.id, task.error, ...task.tags].filter(Boolean).join("\n"));
    searchTexts.set(task, text);
  }
  return words.every((word) => text.includes(word));
}

/** The bar: search, agent, queue, tag, overdue, clear, and the number of matching tasks. */
export class Filters extends HTMLElement {
  #search = h("input", { class: "input", id: "search", type: "search", placeholder: "Search tasks", autocomplete: "off", spellcheck: false, "aria-keyshortcuts": "/" });
  #agent = choice("agent", "Agent", "Any agent");
  #queue = choice("queue", "Queue", "Any queue");
  #tag = choice("tag", "Tag", "Any tag");
  #overdue = h("button", { class: "button filter-toggle", type: "button" }, icon("deadline"), "Overdue");
  #clear = h("button", { class: "button button-quiet", type: "button" }, "Clear filters");
  #count = h("p", { class: "filter-count", role: "status" });
  #elsewhere = h("details", { class: "filter-elsewhere", hidden: true }, h("summary", { class: "button" }), h("ul"));
  #typing = 0;
  #choicesTimer = 0;

  connectedCallback() {
    if (this.childElementCount) return;
    const toggle = h("button", { class: "button button-icon filter-open", type: "button", "aria-label": "Filters", "aria-expanded": "false", "aria-controls": "filter-choices" }, icon("filter"));
    const choices = h("div", { class: "filter-choices", id: "filter-choices" }, this.#agent.label, this.#queue.label, this.#tag.label, this.#overdue, this.#clear);
    const field = h("div", { class: "filter-search" }, icon("search"), h("label", { class: "visually-hidden", for: "search" }, "Search tasks"), this.#search, h("kbd", { "aria-hidden": "true" }, "/"));
    this.append(h("form", { class: "filters", role: "search", on: { submit: (event) => event.preventDefault() } }, field, toggle, choices, this.#count), this.#elsewhere);
    toggle.addEventListener("click", () => {
      const open = this.classList.toggle("is-open");
      toggle.setAttribute("aria-expanded", String(open));
    });
    this.#listen();
    router.addEventListener("route", () => this.#show());
    store.addEventListener("tasks", () => this.#scheduleChoices());
    store.addEventListener("agents", () => this.#scheduleChoices());
    search.addEventListener("found", () => this.#showElsewhere());
    this.#show();
  }

  /** Focuses the search field. */
  focusSearch() {
    this.#search.focus();
    this.#search.select();
  }

  /** Shows how many tasks match; the board counts them. */
  set count({ shown, total }) {
    const number = (value) => value.toLocaleString("en");
    const text = isFiltered() ? `${number(shown)} of ${number(total)} tasks` : `${number(total)} ${total === 1 ? "task" : "tasks"}`;
    if (this.#count.textContent !== text) this.#count.textContent = text;
  }

  #listen() {
    this.#search.addEventListener("input", () => {
      clearTimeout(this.#typing);
      this.#typing = setTimeout(() => {
        this.#typing = 0;
        router.go({ q: this.#search.value.trim() }, { replace: true });
      }, TYPING_PAUSE);
    });
    this.#search.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      clearTimeout(this.#typing);
      this.#typing = 0;
      this.#search.value = "";
      router.go({ q: "" }, { replace: true });
      this.#search.blur();
    });
    for (const [key, { select }] of Object.entries({ agent: this.#agent, queue: this.#queue, tag: this.#tag })) {
      select.addEventListener("change", () => router.go({ [key]: select.value }));
    }
    this.#overdue.addEventListener("click", () => router.go({ overdue: router.state.overdue ? "" : "1" }));
    this.#clear.addEventListener("click", () => {
      router.go(Object.fromEntries(FILTERS.map((key) => [key, ""])));
      // The focused button is about to be hidden.
      document.querySelector("#main").focus();
    });
  }

  #show() {
    const { state } = router;
    if (!this.#typing && this.#search.value.trim() !== state.q) this.#search.value = state.q;
    for (const [key, { select }] of Object.entries({ agent: this.#agent, queue: this.#queue, tag: this.#tag })) {
      if (state[key] && ![...select.options].some((option) => option.value === state[key])) select.append(h("option", { value: state[key] }, state[key]));
      select.value = state[key];
      select.classList.toggle("is-set", Boolean(state[key]));
    }
    this.#overdue.setAttribute("aria-pressed", String(Boolean(state.overdue)));
    this.#clear.hidden = !isFiltered();
    this.#showElsewhere();
    this.classList.toggle("is-filtered", isFiltered());
  }

  /** Offers the tasks that match and are not on the board. */
  #showElsewhere() {
    const passes = predicate({ ...router.state, q: "" });
    const tasks = search.elsewhere.filter(passes);
    const [summary, list] = this.#elsewhere.children;
    this.#elsewhere.hidden = !tasks.length;
    if (!tasks.length) this.#elsewhere.open = false;
    summary.textContent = `${tasks.length.toLocaleString("en")} more ${tasks.length === 1 ? "match" : "matches"}: ${store.truncated ? "not on the board" : "archived"}`;
    fill(list, tasks.map((task) => h("li", null, h("a", { href: router.href({ task: task.id, new: "" }), dir: "auto" }, task.title))));
  }

  #scheduleChoices() {
    if (this.#choicesTimer) return;
    this.#choicesTimer = setTimeout(() => {
      this.#choicesTimer = 0;
      this.#updateChoices();
    }, this.#queue.select.options.length > 1 ? CHOICES_PAUSE : 0);
  }

  #updateChoices() {
    const queues = new Set();
    const tags = new Set();
    const agents = new Map();
    const addAgent = (name) => name && !agents.has(name.toLowerCase()) && agents.set(name.toLowerCase(), name);
    for (const name of store.agents.keys()) addAgent(name);
    for (const task of store.sorted) {
      queues.add(task.queue);
      for (const tag of task.tags) tags.add(tag);
      addAgent(task.claimed_by);
      addAgent(task.assignee);
    }
    setChoices(this.#agent.select, [...agents.values()]);
    setChoices(this.#queue.select, [...queues]);
    setChoices(this.#tag.select, [...tags]);
    this.#show();
  }
}

function choice(key, label, any) {
  const select = h("select", { class: "input", id: `filter-${key}` }, h("option", { value: "" }, any));
  return { select, label: h("span", { class: "filter-choice" }, h("label", { class: "visually-hidden", for: `filter-${key}` }, label), select, icon("chevron-down")) };
}

/** Sets the choices. Leaves equal ones alone, because an open list must not change under the pointer. */
function setChoices(select, values) {
  values.sort((a, b) => a.localeCompare(b));
  const [any, ...others] = select.options;
  if (others.length === values.length && others.every((option, index) => option.value === values[index])) return;
  const chosen = select.value;
  fill(select, any, values.map((value) => h("option", { value }, value)));
  select.value = chosen;
}

customElements.define("atb-filters", Filters);
