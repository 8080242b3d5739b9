/** Comments of a task, oldest first, and a box for one more. */

import { post } from "../api.js";
import { h, fill } from "../dom.js";
import { Seen, swap } from "../live-part.js";
import { markdown } from "../markdown.js";
import { avatar } from "../people.js";
import { attempt, refusalBox } from "../refusal.js";
import { store } from "../store.js";
import { stamp } from "../time.js";

const SHOWN = 30;

/** Give it `show(id, comments)`; after a comment was sent it fires "written". */
export class TaskComments extends HTMLElement {
  #id = "";
  #all = false;
  #comments = [];
  #seen = new Seen();
  #list = h("div", {});
  #text = h("textarea", { id: "comment-text", rows: 3, dir: "auto", "aria-describedby": "comment-hint" });
  #send = h("button", { type: "submit", class: "button" }, "Comment");
  #refused = refusalBox();
  #form = h("form", { class: "comment-form" },
    h("div", { class: "field" }, h("label", { for: "comment-text" }, "New comment"), this.#text),
    this.#refused.node,
    h("div", { class: "form-end" }, h("span", { class: "hint", id: "comment-hint" }, "Markdown. Ctrl+Enter sends."), this.#send));

  connectedCallback() {
    fill(this, h("h3", { class: "part-title" }, "Comments"), this.#list, this.#form);
    this.#form.addEventListener("submit", (event) => this.#submit(event));
    this.#text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.#form.requestSubmit();
    });
  }

  /** Whether somebody typed something that was not sent. */
  get dirty() {
    return this.#text.value.trim() !== "";
  }

  /** Takes over text that has lost its place, below what is there. */
  keep(text) {
    this.#text.value = [this.#text.value.trim(), text].filter(Boolean).join("\n\n");
  }

  /** Puts the cursor into the box; false where there is none. */
  write() {
    if (this.#form.hidden) return false;
    this.#text.focus();
    return true;
  }

  /** Shows a task's comments; what is being typed stays while the task is the same. */
  show(id, comments) {
    if (id !== this.#id) {
      this.#id = id;
      this.#all = false;
      this.discard();
    }
    this.#form.hidden = store.readOnly;
    this.#comments = comments;
    if (this.#seen.changed("comments", [id, comments])) this.#draw();
    this.hidden = store.readOnly && !comments.length;
  }

  /** Empties the box. */
  discard() {
    this.#text.value = "";
    this.#refused.clear();
  }

  #draw() {
    const from = this.#all ? 0 : Math.max(0, this.#comments.length - SHOWN);
    const earlier = from > 0 && h("button", { type: "button", class: "button", on: { click: () => this.#drawAll() } }, `Show ${from} earlier`);
    const list = this.#comments.length > 0 && h("ol", { class: "comments" }, ...this.#comments.slice(from).map(one));
    swap(this.#list, earlier, list);
  }

  #drawAll() {
    this.#all = true;
    this.#draw();
    this.#list.querySelector(".comment")?.focus();
  }

  async #submit(event) {
    event.preventDefault();
    const text = this.#text.value;
    if (!text.trim()) {
      this.#text.focus();
      return;
    }
    const sent = await attempt(this.#send, this.#refused, () => post(`/api/tasks/${encodeURIComponent(this.#id)}/comments`, { text }));
    if (!sent) return;
    if (this.#text.value === text) this.#text.value = "";
    this.dispatchEvent(new CustomEvent("written", { bubbles: true }));
  }
}

function one(event) {
  return h("li", { class: "comment", tabIndex: -1 },
    avatar(event.actor, event.actor_kind),
    h("div", { class: "comment-text" },
      h("p", { class: "comment-head" }, h("b", { dir: "auto" }, event.actor), " ", h("span", { class: "soft" }, stamp(event.at, { relative: true }))),
      h("div", { class: "prose" }, markdown(event.data.text, { level: 3 }))));
}

customElements.define("atb-task-comments", TaskComments);
