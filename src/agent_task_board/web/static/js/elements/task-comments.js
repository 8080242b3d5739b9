/** The comments of a task, oldest first, and a box for a new commentItem. */

import { post } from "../api.js";
import { h, fill } from "../dom.js";
import { LastValues, swap } from "../live-part.js";
import { markdown } from "../markdown.js";
import { avatar } from "../people.js";
import { quotedName } from "../printable.js";
import { refusalBox, runAction } from "../refusal.js";
import { importedMark } from "../sentences.js";
import { store } from "../store.js";
import { stamp } from "../time.js";

const SHOWN = 30;

/** Set the comments with `show(id, comments)`; fires "written" after a comment is sent. */
export class TaskComments extends HTMLElement {
  #id = "";
  #all = false;
  #comments = [];
  #lastValues = new LastValues();
  #list = h("div", {});
  #text = h("textarea", { id: "comment-text", rows: 3, dir: "auto", "aria-describedby": "comment-hint" });
  #send = h("button", { type: "submit", class: "button" }, "Comment");
  #refused = refusalBox();
  #form = h("form", { class: "comment-form" },
    h("div", { class: "field" }, h("label", { for: "comment-text" }, "New comment"), this.#text),
    this.#refused.node,
    h("div", { class: "form-end" }, h("span", { class: "hint", id: "comment-hint" }, "Supports Markdown. Press Ctrl+Enter to send."), this.#send));

  connectedCallback() {
    fill(this, h("h3", { class: "part-title" }, "Comments"), this.#list, this.#form);
    this.#form.addEventListener("submit", (event) => this.#submit(event));
    this.#text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.#form.requestSubmit();
    });
  }

  /** Whether there is an unsent comment. */
  get dirty() {
    return this.#text.value.trim() !== "";
  }

  /** Appends text that was typed in a panel that has closed. */
  keep(text) {
    this.#text.value = [this.#text.value.trim(), text].filter(Boolean).join("\n\n");
  }

  /** Focuses the box; returns false if it is hidden. */
  write() {
    if (this.#form.hidden) return false;
    this.#text.focus();
    return true;
  }

  /** Shows a task's comments. Typed text stays while the task is the same. */
  show(id, comments) {
    if (id !== this.#id) {
      this.#id = id;
      this.#all = false;
      this.discard();
    }
    this.#form.hidden = store.readOnly;
    this.#comments = comments;
    if (this.#lastValues.changed("comments", [id, comments])) this.#draw();
    this.hidden = store.readOnly && !comments.length;
  }

  /** Empties the box. */
  discard() {
    this.#text.value = "";
    this.#refused.clear();
  }

  #draw() {
    const from = this.#all ? 0 : Math.max(0, this.#comments.length - SHOWN);
    const earlier = from > 0 && h("button", { type: "button", class: "button", on: { click: () => this.#drawAll() } }, `Show ${from} earlier comments`);
    const list = this.#comments.length > 0 && h("ol", { class: "comments" }, ...this.#comments.slice(from).map(commentItem));
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
    const sent = await runAction(this.#send, this.#refused, () => post(`/api/tasks/${encodeURIComponent(this.#id)}/comments`, { text }));
    if (!sent) return;
    if (this.#text.value === text) this.#text.value = "";
    this.dispatchEvent(new CustomEvent("written", { bubbles: true }));
  }
}

function commentItem(event) {
  return h("li", { class: "comment", tabIndex: -1 },
    avatar(event.actor, event.actor_kind),
    h("div", { class: "comment-text" },
      h("p", { class: "comment-head" }, h("b", { dir: "auto" }, quotedName(event.actor)), " ", h("span", { class: "soft" }, stamp(event.at, { relative: true })), event.imported ? [" ", importedMark()] : null),
      h("div", { class: "prose" }, markdown(event.data.text, { level: 3 }))));
}

customElements.define("atb-task-comments", TaskComments);
