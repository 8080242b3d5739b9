/** The server's answer to the search of the current URL. Without one, the page searches what it has. */

import { get, Refusal } from "./api.js";
import { router } from "./router.js";
import { store } from "./store.js";

/** Tasks asked for; beyond them, the page searches what it has. */
const MOST = 1000;
const PAUSE = 150;
/** The least time between two searches for the same text, while the board changes. */
const AGAIN = 2000;

class Search extends EventTarget {
  #text = "";
  #snippets = null;
  #found = [];
  #isWhole = true;
  #timer = 0;
  #askedAt = -Infinity;
  #running = null;

  constructor() {
    super();
    router.addEventListener("route", () => this.#follow());
    store.addEventListener("tasks", () => this.#text && this.#schedule(Math.max(PAUSE, this.#askedAt + AGAIN - performance.now())));
  }

  /** Begins with the text of the URL; called once. */
  start() {
    this.#follow();
  }

  /** Whether the server found the task; undefined if it has not answered for this text, or did not name all it found. */
  has(text, id) {
    if (text !== this.#text || !this.#snippets) return undefined;
    return this.#snippets.has(id) || (this.#isWhole ? false : undefined);
  }

  /** The part of the task's texts that matches, or "". */
  snippet(id) {
    return this.#snippets?.get(id) ?? "";
  }

  /** Tasks that match and are not on the board: archived ones, and others if the board is cut off. */
  get elsewhere() {
    return this.#found.filter(({ id }) => !store.task(id));
  }

  #follow() {
    const text = router.state.q;
    if (text === this.#text) return;
    this.#text = text;
    this.#running?.abort();
    this.#forget();
    clearTimeout(this.#timer);
    this.#timer = 0;
    if (text) this.#schedule(PAUSE);
  }

  #schedule(wait) {
    this.#timer ||= setTimeout(() => {
      this.#timer = 0;
      this.#ask();
    }, wait);
  }

  async #ask() {
    const text = this.#text;
    this.#askedAt = performance.now();
    this.#running?.abort();
    const running = (this.#running = new AbortController());
    try {
      const { data } = await get(`/api/tasks?${new URLSearchParams({ search: text, limit: MOST })}`, { signal: running.signal });
      if (text !== this.#text) return;
      this.#snippets = new Map(data.tasks.map((task) => [task.id, task.snippet === task.title ? "" : task.snippet]));
      this.#isWhole = data.next === null;
      this.#found = data.tasks;
      this.dispatchEvent(new Event("found"));
    } catch (error) {
      if (error.name === "AbortError") return;
      if (!(error instanceof Refusal)) throw error;
      if (text === this.#text) this.#forget(); // offline, or too slow: what the page has
    }
  }

  #forget() {
    if (!this.#snippets) return;
    this.#snippets = null;
    this.#found = [];
    this.dispatchEvent(new Event("found"));
  }
}

/** `has`, `snippet`, `elsewhere`; event "found". */
export const search = new Search();
