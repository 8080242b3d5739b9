/** The history of a task, newest first, loaded page by page. */

import { get } from "../api.js";
import { fill, h } from "../dom.js";
import { markdown } from "../markdown.js";
import { avatar } from "../people.js";
import { refusalBox, runAction } from "../refusal.js";
import { remark, sentence } from "../sentences.js";
import { stamp } from "../time.js";

const PAGE = 20;

/** Call `load(id)` for a task, then `refresh()` whenever the task changes. */
export class TaskTimeline extends HTMLElement {
  #id = "";
  #newest = 0;
  #next = 0;
  #list = h("ol", { class: "timeline" });
  #more = h("button", { type: "button", class: "button", hidden: true }, "Load more");
  #refused = refusalBox();

  connectedCallback() {
    fill(this, this.#list, this.#refused.node, this.#more);
    this.#more.addEventListener("click", () => this.#loadMore());
  }

  /** Shows the newest events of a task. */
  async load(id) {
    this.#id = id;
    this.#newest = 0;
    this.#next = 0;
    this.#more.hidden = true;
    this.#list.replaceChildren();
    await this.refresh();
  }

  /** Adds new events at the top. */
  async refresh() {
    const id = this.#id;
    const page = await this.#read(0);
    if (!page || id !== this.#id) return;
    const fresh = page.events.filter((event) => event.seq > this.#newest);
    if (!fresh.length) return;
    if (fresh.length === page.events.length && page.next) {
      // The list is empty, or there are more new events than one page: start over to avoid a gap.
      this.#list.replaceChildren();
      this.#next = page.next;
    }
    this.#newest = fresh[0].seq;
    this.#list.prepend(...fresh.map(entry));
    this.#more.hidden = !this.#next;
  }

  async #loadMore() {
    const shown = this.#list.children.length;
    await runAction(this.#more, this.#refused, async () => {
      const id = this.#id;
      const { data } = await this.#page(this.#next);
      if (id !== this.#id) return;
      this.#list.append(...data.events.map(entry));
      this.#next = data.next;
      this.#more.hidden = !data.next;
    });
    if (this.#more.hidden) this.#list.children[shown]?.focus();
  }

  async #read(before) {
    this.#refused.clear();
    try {
      return (await this.#page(before)).data;
    } catch (error) {
      this.#refused.show(error);
      return null;
    }
  }

  #page(before) {
    return get(`/api/tasks/${encodeURIComponent(this.#id)}/events?before=${before}&limit=${PAGE}`);
  }
}

function entry(event) {
  // The comments section already shows the text of a comment.
  const words = event.kind === "commented" ? null : remark(event);
  return h("li", { class: "timeline-entry", tabIndex: -1 },
    avatar(event.actor, event.actor_kind),
    h("div", { class: "timeline-text" },
      h("p", { dir: "auto" }, ...sentence(event), " ", stamp(event.at, { relative: true })),
      ...changes(event),
      words && h("div", { class: "prose timeline-remark", dir: "auto" }, markdown(words))));
}

/** The old and new values of an edit; its sentence names only the fields. */
function changes(event) {
  if (event.kind !== "updated") return [];
  const shown = Object.entries(event.data.changes ?? {}).filter(([, change]) => "from" in change && "to" in change);
  if (!shown.length) return [];
  return [h("ul", { class: "timeline-changes" }, ...shown.map(([field, { from, to }]) =>
    h("li", {}, h("span", { class: "mono" }, field), " ", value(from), " → ", value(to))))];
}

function value(item) {
  if (item === null || item === "" || (Array.isArray(item) && !item.length)) return h("i", {}, "none");
  if (item !== null && typeof item === "object") {
    if ("bytes" in item) return `${item.bytes} bytes`;
    return h("bdi", {}, Array.isArray(item) ? item.join(", ") : JSON.stringify(item));
  }
  return h("bdi", {}, String(item));
}

customElements.define("atb-task-timeline", TaskTimeline);
