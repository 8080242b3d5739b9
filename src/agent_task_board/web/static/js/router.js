/** The address is the state: view, open task and filters live in the query string, so every place can be linked. */

const KEYS = ["view", "agent", "queue", "tag", "q", "overdue", "activity", "task", "new"];
export const FILTERS = ["agent", "queue", "tag", "q", "overdue"];

class Router extends EventTarget {
  constructor() {
    super();
    this.state = read();
    addEventListener("popstate", () => this.#moved());
    document.addEventListener("click", (event) => this.#followLink(event));
  }

  /** The address of this place with `changes` applied; null, false and "" take a key away. */
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

  /** Goes to the place with `changes` applied; `replace` leaves no step to go back to. */
  go(changes, { replace = false } = {}) {
    const address = this.href(changes);
    if (address === this.#here()) return;
    history[replace ? "replaceState" : "pushState"](null, "", address);
    this.#moved();
  }

  #here() {
    return location.pathname + location.search;
  }

  #moved() {
    const previous = this.state;
    this.state = read();
    this.dispatchEvent(new CustomEvent("route", { detail: { previous } }));
  }

  /** Plain clicks on links within the page change the state; clicks that open a tab are left to the browser. */
  #followLink(event) {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
    if (!link || link.target || link.hasAttribute("download")) return;
    const url = new URL(link.href, location.href);
    if (url.origin !== location.origin || url.pathname !== "/" || url.hash) return;
    event.preventDefault();
    if (url.pathname + url.search === this.#here()) return;
    history.pushState(null, "", url.pathname + url.search);
    this.#moved();
  }
}

function read() {
  const query = new URLSearchParams(location.search);
  const state = {};
  for (const key of KEYS) state[key] = query.get(key) ?? "";
  if (!["graph", "flow"].includes(state.view)) state.view = "board";
  return state;
}

/** `state` (every key a string), `go`, `href`; event "route" (detail: the previous state). */
export const router = new Router();
