/** The bar at the top: views, connection state and page controls. */

import { fill, h, icon } from "../dom.js";
import { showShortcuts } from "../keyboard.js";
import { canNotify, notifying, switchNotify } from "../notify.js";
import { router } from "../router.js";
import { settingsPopover, themeButton } from "../settings.js";
import { store } from "../store.js";
import { everySecond } from "../time.js";
import { toast } from "./toast.js";

const VIEWS = [
  { view: "board", label: "Board", symbol: "board" },
  { view: "graph", label: "Graph", symbol: "graph" },
  { view: "flow", label: "Flow", symbol: "flow" },
];

/** Milliseconds without a response after which "reconnecting" becomes "offline". */
const OFFLINE_AFTER = 10_000;

/** Brand, views, connection state, activity, notifications, shortcuts, theme, settings, new task. */
export class Header extends HTMLElement {
  #views = h("ul", { class: "views" });
  #live = h("span", { class: "live", role: "status" });
  #readOnly = h("span", { class: "chip read-only" }, "Read-only");
  #new = h("a", { class: "button button-primary header-new", href: "/?new=1", "aria-label": "New task", "aria-keyshortcuts": "n" }, icon("plus"), h("span", null, "New task"));
  #activity = h("button", { class: "button button-quiet button-icon", type: "button", "aria-label": "Activity", title: "Activity (a)" }, icon("activity"));
  #bells = [];
  #lostAt = 0;

  connectedCallback() {
    if (this.childElementCount) return;
    const bell = this.#bell("button button-quiet button-icon wide-only");
    const bellInSettings = this.#bell("button phone-only");
    const keys = button("keyboard", "Keyboard shortcuts", "Keyboard shortcuts (?)", "wide-only");
    keys.addEventListener("click", showShortcuts);
    const settings = button("settings", "Settings", "Settings", "");
    const popover = settingsPopover(bellInSettings);
    settings.popoverTargetElement = popover;
    const theme = themeButton();
    theme.classList.add("wide-only");
    this.#activity.addEventListener("click", () => toggleActivity());
    this.append(
      h(
        "header",
        { class: "header" },
        h("a", { class: "brand", href: "/", "aria-label": "Agent Task Board: all tasks" }, h("img", { src: "/static/favicon.svg", alt: "", width: 24, height: 24 }), h("span", { class: "brand-name" }, "Agent Task Board")),
        h("nav", { "aria-label": "Views" }, this.#views),
        h("div", { class: "header-state" }, this.#live, this.#readOnly),
        h("div", { class: "header-controls" }, this.#activity, bell, keys, theme, settings, this.#new),
        popover,
      ),
    );
    router.addEventListener("route", () => this.#showViews());
    store.addEventListener("settings", () => this.#showReadOnly());
    store.addEventListener("online", () => this.#showLive());
    store.addEventListener("tasks", () => this.#showLive());
    everySecond(() => this.#showLive());
    this.#showViews();
    this.#showReadOnly();
    this.#showLive();
  }

  #showViews() {
    const { state } = router;
    const links = VIEWS.map(({ view, label, symbol }) =>
      h("li", null, h("a", { href: router.href({ view, task: "", new: "" }), "aria-label": label, title: label, "aria-current": state.view === view ? "page" : null }, icon(symbol), h("span", null, label))),
    );
    const focused = [...this.#views.querySelectorAll("a")].indexOf(document.activeElement);
    fill(this.#views, links);
    if (focused >= 0) this.#views.querySelectorAll("a")[focused].focus();
    this.#new.href = router.href({ new: "1", task: "" });
    this.#activity.setAttribute("aria-pressed", String(Boolean(state.activity)));
  }

  #showReadOnly() {
    this.#readOnly.hidden = !store.readOnly;
    this.#new.hidden = store.readOnly;
    document.documentElement.classList.toggle("is-read-only", store.readOnly);
  }

  #showLive() {
    if (store.online) this.#lostAt = 0;
    else this.#lostAt ||= Date.now();
    const state = store.online ? "live" : Date.now() - this.#lostAt < OFFLINE_AFTER && navigator.onLine ? "reconnecting" : "offline";
    if (this.#live.dataset.state === state) return;
    this.#live.dataset.state = state;
    const text = { live: "Live", reconnecting: "Reconnecting", offline: "Offline" }[state];
    this.#live.title = { live: "Changes appear automatically", reconnecting: "The server is not responding. Reconnecting…", offline: "The server is not responding. This page may be out of date." }[state];
    fill(this.#live, h("span", { class: "live-dot", "aria-hidden": "true" }), h("span", { class: "live-text" }, text));
  }

  #bell(classes) {
    const bell = h("button", { class: classes, type: "button", hidden: !canNotify() });
    const show = () => {
      const on = notifying();
      fill(bell, icon(on ? "bell" : "bell-off"), classes.includes("icon") ? null : h("span", null, "Notifications"));
      bell.setAttribute("aria-pressed", String(on));
      bell.setAttribute("aria-label", "Notifications");
      bell.title = on ? "Turn off notifications" : "Notify me when a task needs me";
    };
    bell.addEventListener("click", async () => {
      const wanted = !notifying();
      const on = await switchNotify(wanted);
      for (const refresh of this.#bells) refresh();
      if (wanted && !on) toast("Your browser blocks notifications from this page. You can allow them in its site settings.");
    });
    this.#bells.push(show);
    show();
    return bell;
  }
}

/** Opens or closes the activity drawer. */
export function toggleActivity() {
  router.go({ activity: router.state.activity ? "" : "1" }, { replace: true });
}

function button(symbol, label, title, classes) {
  return h("button", { class: `button button-quiet button-icon ${classes}`, type: "button", "aria-label": label, title }, icon(symbol));
}

customElements.define("atb-header", Header);
