/** "Needs you": the tasks that need a person, in one line above the columns. */

import { fill, h, icon } from "../dom.js";
import { dismiss, needsYou, REASONS, tidyDismissed } from "../needs.js";
import { quotedName } from "../printable.js";
import { router } from "../router.js";
import { store } from "../store.js";
import { waitsFor } from "../stuck.js";
import { stamp } from "../time.js";

const IN_LINE = 12;
const OPENED = 200;

/** One line that scrolls sideways; expands to a wrapping list. */
export class Strip extends HTMLElement {
  #title = h("h2", { class: "strip-title" });
  #list = h("ul", { class: "strip-list" });
  #more = h("button", { class: "button button-quiet strip-more", type: "button", "aria-expanded": "false" });
  #dismissAll = h("button", { class: "button button-quiet strip-more", type: "button" }, "Dismiss failed");
  #open = false;
  #shown = "";

  connectedCallback() {
    if (this.childElementCount) return;
    this.append(h("section", { class: "strip", "aria-label": "Needs you" }, this.#title, this.#list, h("div", { class: "strip-buttons" }, this.#dismissAll, this.#more)));
    this.#more.addEventListener("click", () => {
      this.#open = !this.#open;
      this.#show();
    });
    this.#dismissAll.addEventListener("click", () => this.#dismiss(store.sorted.filter((task) => task.status === "failed")));
    store.addEventListener("tasks", () => {
      tidyDismissed(store);
      this.#show();
    });
    router.addEventListener("route", () => this.#show());
    this.hidden = true;
  }

  #show() {
    const needs = needsYou(store.sorted);
    this.hidden = !store.loaded || router.state.view !== "board" || (!needs.length && !store.sorted.length);
    if (this.hidden) return;
    const limit = this.#open ? OPENED : IN_LINE;
    const key = JSON.stringify([this.#open, needs.length, location.search, needs.slice(0, limit).map(({ task, reason }) => [task.id, task.version, reason])]);
    if (key === this.#shown) return;
    this.#shown = key;
    fill(this.#title, icon(needs.length ? "person" : "approve"), needs.length ? "Needs you" : "Nothing needs you", needs.length > 0 && h("span", { class: "badge" }, needs.length.toLocaleString("en")));
    this.classList.toggle("is-empty", !needs.length);
    this.classList.toggle("is-open", this.#open && needs.length > 0);
    this.#showItems(needs, limit);
    this.#more.hidden = needs.length <= 3 && !this.#open;
    this.#more.setAttribute("aria-expanded", String(this.#open));
    fill(this.#more, this.#open ? "Show less" : "Show all");
    this.#dismissAll.hidden = !this.#open || !needs.some(({ reason }) => reason === "failed");
  }

  #showItems(needs, limit) {
    const focused = document.activeElement?.closest(".strip-item")?.dataset.id;
    const rest = needs.length - limit;
    fill(this.#list, needs.slice(0, limit).map((need) => this.#item(need)), rest > 0 && h("li", { class: "strip-rest" }, `and ${rest.toLocaleString("en")} more`));
    if (focused) this.#list.querySelector(`[data-id="${CSS.escape(focused)}"] a`)?.focus();
  }

  #item({ task, reason }) {
    const { label, icon: symbol, css } = REASONS[reason];
    const link = h("a", { class: "strip-link", href: router.href({ task: task.id }), title: task.title }, icon(symbol), h("span", { class: "strip-text" }, h("bdi", { class: "strip-task" }, task.title), h("span", { class: "strip-why" }, label, since(task, reason))));
    const dismissButton = reason === "failed" && h("button", { class: "button button-quiet button-icon strip-dismiss", type: "button", "aria-label": `Dismiss ${task.title}`, title: "Dismiss until the task changes", on: { click: () => this.#dismiss([task]) } }, icon("close"));
    return h("li", { class: `strip-item ${css}`, dataset: { id: task.id } }, link, dismissButton);
  }

  #dismiss(tasks) {
    dismiss(tasks);
    this.#show();
    document.dispatchEvent(new Event("needs-changed"));
    (this.#list.querySelector("a") ?? document.querySelector("#main")).focus();
  }
}

/** How long the reason has applied, and the holder. */
function since(task, reason) {
  if (reason === "stuck") return [": ", ...waitsFor(store.stuck[task.id])];
  const at = { review: task.updated_at, expired: task.lease_expires_at, overdue: task.due_at, failed: task.finished_at }[reason];
  const joint = reason === "overdue" ? " by " : " for ";
  const length = at && (reason === "failed" ? [" ", stamp(at, { relative: true })] : [joint, stamp(at, { elapsed: true })]);
  return [length, task.claimed_by && h("bdi", {}, ` · ${quotedName(task.claimed_by)}`)];
}

customElements.define("atb-strip", Strip);
