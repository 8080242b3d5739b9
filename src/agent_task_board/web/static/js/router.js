/** The URL is the state: its query string holds view, open task and filters, so every state has a link. */

const KEYS = ["view", "agent", "queue", "tag", "q", "overdue", "activity", "task", "new"];
export const FILTERS = ["agent", "queue", "tag", "q", "overdue"];

class Router extends EventTarget {
  constructor() {
    super();
    this.state = read();
    addEventListener("popstate", () => this.#update());
    document.addEventListener("click", (event) => this.#followLink(event));
  }

  /** The current URL with `changes` applied; null, false and "" remove a key. */
  href(changes) {
    const next = { ...this.state, ...changes };
    const query = new URLSearchParams();
    for (const key of KEYS) {
      const value = next[key];
      if (value && !(key === "view" && value === "board")) query.set(key, value === true ? "1" : value);
    }
    const text = query.toString();
    return text ? `/?${text}` : "/";
  }

  /** Goes to the current URL with `changes` applied; `replace` adds no history entry. */
  go(changes, { replace = false } = {}) {
    const address = this.href(changes);
    if (address === this.#currentUrl()) return;
    history[replace ? "replaceState" : "pushState"](null, "", address);
    this.#update();
  }

  #currentUrl() {
    return location.pathname + location.search;
  }

  #update() {
    const previous = this.state;
    this.state = read();
    this.dispatchEvent(new CustomEvent("route", { detail: { previous } }));
  }

  /** Handles plain clicks on links within the page. The browser handles clicks that open a tab. */
  #followLink(event) {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
    if (!link || link.target || link.hasAttribute("download")) return;
    const url = new URL(link.href, location.href);
    if (url.origin !== location.origin || url.pathname !== "/" || url.hash) return;
    event.preventDefault();
    if (url.pathname + url.search === this.#currentUrl()) return;
    history.pushState(null, "", url.pathname + url.search);
    this.#update();
  }
}

function read() {
  const query = new URLSearchParams(location.search);
  const state = {};
  for (const key of KEYS) state[key] = query.get(key) ?? "";
  if (!["graph", "flow"].includes(state.view)) state.view = "board";
  return state;
}

/** `state` (every value is a string), `go`, `href`; event "route" (detail: the previous state). */
export const router = new Router();
