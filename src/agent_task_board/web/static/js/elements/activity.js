/** The activity drawer: the board's history in sentences, newest first, live while it is open. */

import { lines, CLAIM_EVENTS } from "../activity-lines.js";
import { get, Refusal } from "../api.js";
import { formZone } from "../board-time.js";
import { fill, h, icon } from "../dom.js";
import { isFiltered, predicate } from "../filters.js";
import { avatar } from "../people.js";
import { runAction, refusalBox } from "../refusal.js";
import { router } from "../router.js";
import { claimSentence, isEnding, remark, sentence } from "../sentences.js";
import { remember, remembered, store } from "../store.js";
import { now, stamp } from "../time.js";

const PAGE = 60;
const CATCH_UP = 500;
const KEY = "atb-activity";
const PHONE = matchMedia("(max-width: 760px)");

export class Activity extends HTMLElement {
  #events = [];
  #next = 0;
  #loaded = false;
  #reading = null;
  #refreshAgain = false;
  #entries = new Map();
  #opener = null;
  #list = h("div", { class: "activity-list" });
  #more = h("button", { class: "button", type: "button", hidden: true, on: { click: () => this.#loadMore() } }, "Load more");
  #refused = refusalBox();
  #filtered = h("p", { class: "activity-filtered hint", hidden: true });
  #close = h("button", { class: "button button-quiet button-icon", type: "button", "aria-label": "Close activity", on: { click: () => this.#closeDrawer() } }, icon("close"));
  #scroller = h("div", { class: "activity-scroll", tabIndex: 0, role: "region", "aria-label": "Events, newest first" }, this.#filtered, this.#list, this.#refused.node, this.#more);

  connectedCallback() {
    if (this.childElementCount) return;
    this.hidden = true;
    this.append(h("aside", { class: "activity", "aria-labelledby": "activity-title" },
      h("div", { class: "activity-head" }, h("h2", { id: "activity-title" }, "Activity"), this.#close),
      this.#scroller));
    this.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.defaultPrevented) return;
      event.preventDefault();
      this.#closeDrawer();
    });
    PHONE.addEventListener("change", () => this.#showOpen());
    router.addEventListener("route", () => this.#routed());
    store.addEventListener("tasks", () => this.#refresh());
    if (remembered(KEY) && !router.state.activity && !PHONE.matches) router.go({ activity: "1" }, { replace: true });
    this.#routed();
  }

  #routed() {
    this.#showOpen();
    if (router.state.activity) this.#draw();
    this.#refresh();
  }

  #showOpen() {
    const open = Boolean(router.state.activity);
    const covers = open && PHONE.matches;
    for (const part of document.querySelectorAll("atb-header, main")) part.inert = covers;
    if (open !== this.hidden) return;
    const focused = this.contains(document.activeElement);
    this.hidden = !open;
    remember(KEY, open ? "1" : "");
    document.documentElement.classList.toggle("has-activity", open);
    if (open) this.#opener = document.activeElement;
    if (covers) this.#close.focus();
    else if (!open && focused) this.#opener?.focus();
  }

  #closeDrawer() {
    router.go({ activity: "" }, { replace: true });
  }

  /** Loads new events, one request at a time. */
  async #refresh() {
    if (!router.state.activity || !store.loaded) return;
    if (this.#reading) {
      this.#refreshAgain = true;
      return;
    }
    this.#reading = this.#read();
    await this.#reading;
    this.#reading = null;
    if (this.#refreshAgain) {
      this.#refreshAgain = false;
      this.#refresh();
    }
  }

  async #read() {
    try {
      if (this.#loaded) await this.#catchUp();
      else await this.#begin();
    } catch (error) {
      // The header shows a lost connection. The next change of the board reloads the events.
      if (!(error instanceof Refusal)) throw error;
    }
  }

  async #begin() {
    const { data } = await get(`/api/events?before=0&limit=${PAGE}`);
    this.#events = data.events;
    this.#next = data.next;
    this.#loaded = true;
    this.#draw();
  }

  async #catchUp() {
    const newest = this.#events[0]?.seq ?? 0;
    const { data } = await get(`/api/events?after=${newest}&limit=${CATCH_UP}`);
    if (data.events.length === CATCH_UP) return this.#begin();
    if (!data.events.length) return;
    this.#events.unshift(...data.events.reverse());
    this.#draw(newest);
  }

  #loadMore() {
    return runAction(this.#more, this.#refused, async () => {
      const { data } = await get(`/api/events?before=${this.#next}&limit=${PAGE}`);
      this.#events.push(...data.events);
      this.#next = data.next;
      this.#draw();
    });
  }

  /** Draws the lines. Keeps unchanged lines, the focus and the scroll position. */
  #draw(newerThan = Infinity) {
    const focused = this.#list.contains(document.activeElement) ? document.activeElement : null;
    const { scrollTop, scrollHeight } = this.#scroller;
    const entries = new Map();
    const days = [];
    for (const line of this.#filteredLines()) {
      const day = dayOf(line.events[0].at);
      if (days.at(-1)?.day !== day) days.push({ day, items: [] });
      const fresh = line.events[0].seq > newerThan;
      const expired = hasExpired(line.events[0]);
      const key = expired ? `${line.key} expired` : line.key;
      const item = this.#entries.get(key) ?? entry(line.events, { fresh, expired });
      entries.set(key, item);
      days.at(-1).items.push(item);
    }
    this.#entries = entries;
    fill(this.#list, days.map(({ day, items }) => h("section", null, h("h3", { class: "activity-day" }, day), h("ol", { class: "activity-lines" }, items))));
    if (!days.length && this.#loaded) fill(this.#list, h("p", { class: "view-empty" }, isFiltered() ? "No activity matches the filters." : "No activity yet."));
    this.#more.hidden = !this.#next;
    if (focused?.isConnected) focused.focus({ preventScroll: true });
    if (scrollTop > 40 && newerThan !== Infinity) this.#scroller.scrollTop = scrollTop + this.#scroller.scrollHeight - scrollHeight;
  }

  #filteredLines() {
    const all = lines(this.#events);
    const filtered = isFiltered();
    this.#filtered.hidden = !filtered;
    if (!filtered) return all;
    const passes = predicate();
    const shown = all.filter(({ events }) => store.task(events[0].task_id) && passes(store.task(events[0].task_id)));
    this.#filtered.textContent = `${shown.length.toLocaleString("en")} of ${all.length.toLocaleString("en")} entries match the filters.`;
    return shown;
  }
}

/** Whether this is the latest event of an agent whose lease has since expired. */
function hasExpired(event) {
  if (isEnding(event)) return false;
  const task = store.task(event.task_id);
  return Boolean(task?.lease_expired) && task.claimed_by === event.actor && CLAIM_EVENTS.includes(event.kind);
}

function entry(events, { fresh, expired }) {
  const [latest] = events;
  const ofClaim = events.length > 1 || latest.kind === "claimed";
  const summary = ofClaim ? claimSentence(events, { withTask: true }) : sentence(latest, { withTask: true });
  const words = ofClaim && !isEnding(latest) ? null : remark(latest);
  return h("li", { class: fresh ? "activity-line is-fresh" : "activity-line" },
    avatar(latest.actor, latest.actor_kind),
    h("div", { class: "activity-text" },
      h("p", { dir: "auto" }, summary),
      expired && h("p", { class: "activity-silent" }, icon("silent"), "The lease has expired"),
      words && h("p", { class: latest.data.error ? "activity-remark is-error" : "activity-remark", dir: "auto" }, words.slice(0, 400)),
      h("p", { class: "activity-time" }, stamp(latest.at, { relative: true }))));
}

/** "Today", "Yesterday" or the day's date, in the board's zone. */
function dayOf(iso) {
  const format = new Intl.DateTimeFormat("en-GB", { timeZone: formZone(), weekday: "long", day: "numeric", month: "long" });
  const day = format.format(new Date(iso));
  if (day === format.format(now())) return "Today";
  return day === format.format(now() - 86_400_000) ? "Yesterday" : day;
}

customElements.define("atb-activity", Activity);
