/** The task page: everything about one task, live, in a dialog with its own URL. */

import { get, Refusal } from "../api.js";
import { copyButton } from "../copy-button.js";
import { fill, h } from "../dom.js";
import { shortcut } from "../keyboard.js";
import { LastValues } from "../live-part.js";
import { refusalBox } from "../refusal.js";
import { router } from "../router.js";
import { shortId } from "../status.js";
import { store } from "../store.js";
import { RoutedDialog } from "./routed-dialog.js";
import "./task-actions.js";
import "./task-comments.js";
import { status } from "./task-facts.js";
import "./task-form.js";
import "./task-sections.js";
import "./task-timeline.js";
import { toast } from "./toast.js";

/** Open while the URL has `task=ID`. */
export class TaskDialog extends RoutedDialog {
  key = "task";
  #details = null;
  #loading = null;
  #editSoon = false;
  #refreshAgain = false;
  #lastValues = new LastValues();
  #last = "";

  #bar = h("div", { class: "task-bar-facts" });
  #title = h("h2", { id: "task-title", class: "task-title", tabIndex: -1, dir: "auto" });
  #actions = document.createElement("atb-task-actions");
  #facts = document.createElement("atb-task-facts");
  #sections = document.createElement("atb-task-sections");
  #comments = document.createElement("atb-task-comments");
  #timeline = document.createElement("atb-task-timeline");
  #form = document.createElement("atb-task-form");
  #refused = refusalBox();
  #reading = h("div", { class: "task-main" }, this.#sections, this.#comments,
    h("section", { class: "part" }, h("h3", { class: "part-title" }, "Timeline"), this.#timeline));
  #page = h("div", { class: "task-page" },
    h("div", { class: "task-intro" }, this.#title, this.#actions), this.#facts, this.#reading, this.#form);
  #scroll = h("div", { class: "task-scroll" }, this.#refused.node, this.#page);

  build() {
    this.dialog.setAttribute("aria-labelledby", "task-title");
    this.dialog.classList.add("task");
    this.dialog.append(h("div", { class: "task-bar" }, this.#bar, h("span", { class: "spacer" }), this.closeButton()), this.askPlace, this.#scroll);
    this.#form.hidden = true;
    this.addEventListener("acted", () => {
      this.#title.focus({ preventScroll: true }); // the clicked button is about to disappear
      this.#changed();
    });
    this.addEventListener("leftover", ({ detail }) => {
      this.#comments.keep(detail);
      this.#title.focus({ preventScroll: true });
      toast("The task has changed. Your text is now in the comment box.");
    });
    this.addEventListener("written", () => this.#changed());
    this.addEventListener("edit", () => this.#edit());
    this.#form.addEventListener("saved", ({ detail }) => this.#saved(detail));
    this.#form.addEventListener("abandon", () => this.#endEdit());
    // A comment changes no task, so any change of the board's revision may concern this page.
    store.addEventListener("tasks", () => this.#refresh());
    store.addEventListener("agents", () => this.#details && this.#facts.show(this.#details.task));
    store.addEventListener("settings", () => this.#details && this.#draw());
    shortcut("e", "Edit the open task", () => this.#onTop() && this.#edit(), { group: "Tasks", anywhere: true });
    shortcut("c", "Comment on the open task", () => this.#onTop() && this.#comments.write(), { group: "Tasks", anywhere: true });
  }

  opened(id) {
    this.#details = null;
    this.#editSoon = false;
    this.#lastValues = new LastValues();
    this.#endEdit();
    this.#refused.clear();
    this.#sections.clear();
    this.#actions.clear();
    this.#reading.hidden = true;
    this.#page.hidden = true;
    const known = store.task(id);
    if (known) this.#head(known);
    else fill(this.#bar);
    this.#scroll.scrollTop = 0;
    this.#title.focus();
    this.#refresh();
  }

  closed() {
    this.#details = null;
    this.#returnFocus();
  }

  get dirty() {
    return this.#actions.dirty || this.#comments.dirty || (!this.#form.hidden && this.#form.dirty);
  }

  discard() {
    this.#actions.discard();
    this.#comments.discard();
    this.#endEdit();
  }

  /** The browser cannot return the focus to a card that was redrawn meanwhile. */
  #returnFocus() {
    if (document.activeElement && document.activeElement !== document.body) return;
    document.querySelector(`a[href="${CSS.escape(router.href({ task: this.#last }))}"]`)?.focus();
  }
  #onTop() {
    return this.dialog.open && [...document.querySelectorAll("dialog[open]")].every((dialog) => dialog === this.dialog);
  }

  #changed() {
    store.refresh();
    this.#refresh();
  }

  /** Reloads the task, one request at a time, and once more if the board changed meanwhile. */
  async #refresh() {
    if (!this.shown) return;
    if (this.#loading === this.shown) {
      this.#refreshAgain = true;
      return;
    }
    const id = this.shown;
    this.#loading = id;
    this.#refreshAgain = false;
    try {
      const { data } = await get(`/api/tasks/${encodeURIComponent(id)}?output=true&why=true`);
      if (id === this.shown) this.#apply(data);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      // The header shows a lost connection; keep the content.
      if (id === this.shown && !(error.code === "offline" && this.#details)) this.#refuse(error);
    } finally {
      if (this.#loading === id) this.#loading = null;
    }
    if (this.#refreshAgain && id === this.shown) this.#refresh();
  }

  #refuse(error) {
    if (!this.#details) fill(this.#title, "Cannot show this task");
    this.#page.hidden = !this.#details;
    this.#refused.show(error);
  }

  #apply(details) {
    const first = this.#details === null;
    this.#details = details;
    this.#refused.clear();
    if (!this.#lastValues.changed("details", details)) return;
    this.#draw();
    if (first && !this.#page.contains(document.activeElement)) this.#title.focus();
    if (first) this.#timeline.load(details.task.id);
    else this.#timeline.refresh();
    if (this.#editSoon) {
      this.#editSoon = false;
      this.#edit();
    }
  }

  #draw() {
    const { task, comments } = this.#details;
    this.#head(task);
    this.#sections.show(this.#details);
    this.#comments.show(task.id, comments);
    this.#reading.hidden = !this.#form.hidden;
  }

  #head(task) {
    this.#page.hidden = false;
    this.#last = this.shown;
    fill(this.#title, task.title);
    fill(this.#bar, status(task), h("span", { class: "mono soft" }, shortId(task.id)),
      copyButton(() => new URL(`/?task=${task.id}`, location.href).href, "Copy link"));
    this.#actions.show(task);
    this.#facts.show(task);
  }

  #edit() {
    if (!this.#details && this.shown) return (this.#editSoon = true); // the button appears before the task has loaded
    if (!this.#details || store.readOnly || !this.#form.hidden || !this.#actions.querySelector('[data-action="edit"]')) return false;
    this.#form.hidden = false;
    this.#reading.hidden = true;
    this.#form.open(this.#details.task);
    return true;
  }

  #endEdit() {
    const was = !this.#form.hidden;
    this.#form.clear();
    this.#form.hidden = true;
    this.#reading.hidden = false;
    if (!was || !this.dialog.open) return;
    this.#scroll.scrollTop = 0;
    this.#title.focus();
  }

  #saved({ warnings }) {
    toast(["Saved", ...warnings].join(". "), { kind: "done" });
    this.#endEdit();
    this.#changed();
  }
}

customElements.define("atb-task-dialog", TaskDialog);
