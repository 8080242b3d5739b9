/** The form of a task: a new one, or an edit that sends what changed and nothing else. */

import { get, patch, post, Refusal } from "../api.js";
import { fill, h, icon } from "../dom.js";
import { controlFor, FIELDS, makeControl, WrongValue } from "../form-controls.js";
import { attempt, refusalBox } from "../refusal.js";
import { changedMeanwhile } from "./task-conflict.js";

/** Give it `open(task)` or `open(null)` for a new one; fires "saved" (detail {task, warnings}) and "abandon". */
export class TaskForm extends HTMLElement {
  #task = null;
  #version = 0;
  #controls = new Map();
  #written = new Map(); // what each control read when it was filled: what differs from it was typed
  #refused = refusalBox();
  #conflict = h("div", { role: "alert" });
  #save = null;

  /** Draws the form anew and puts the cursor into the title. */
  open(task) {
    this.#task = task;
    this.#version = task?.version ?? 0;
    this.#refused.clear();
    this.#conflict.replaceChildren();
    // An assignee is set at the making and while queued; later it takes the task from its holder, which is another act.
    const fields = FIELDS.filter((field) => !(field.name === "assignee" && task && task.status !== "queued"));
    this.#controls = new Map(fields.map((field) => [field.name, makeControl(field, { self: task?.id })]));
    for (const name of this.#controls.keys()) this.#fill(name, task?.[name] ?? null);
    this.#save = h("button", { type: "submit", class: "button button-primary" }, task ? "Save" : "Add task");
    const form = h("form", { class: "task-form", noValidate: true, "aria-label": task ? "Edit the task" : "New task" },
      h("div", { class: "form-grid" }, ...[...this.#controls.values()].map((control) => control.node)),
      this.#conflict,
      this.#refused.node,
      h("div", { class: "form-end" },
        h("span", { class: "hint" }, "Ctrl+Enter saves."),
        h("button", { type: "button", class: "button button-quiet", on: { click: () => this.dispatchEvent(new Event("abandon")) } }, "Discard"),
        this.#save));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    form.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
    });
    fill(this, form);
    this.#controls.get("title").input.focus();
  }

  /** Whether something was typed that was not saved. */
  get dirty() {
    return [...this.#controls.keys()].some((name) => this.#isTouched(name));
  }

  /** Drops the form and what was typed. */
  clear() {
    this.#controls.clear();
    this.replaceChildren();
  }

  #fill(name, value) {
    const control = this.#controls.get(name);
    control.write(value);
    this.#written.set(name, this.#text(control));
  }

  #text(control) {
    try {
      return JSON.stringify(control.read());
    } catch (error) {
      if (error instanceof WrongValue) return error.message;
      throw error;
    }
  }

  #isTouched(name) {
    return this.#text(this.#controls.get(name)) !== this.#written.get(name);
  }

  /** What to send, or null when a field is wrong: its message then stands there. */
  #changes() {
    const changes = {};
    let wrong = null;
    for (const [name, control] of this.#controls) {
      control.complain(null);
      try {
        const value = control.read();
        if (this.#isTouched(name)) changes[name] = value;
      } catch (error) {
        if (!(error instanceof WrongValue)) throw error;
        control.complain(error.message);
        wrong ??= control;
      }
    }
    wrong?.input.focus();
    return wrong ? null : changes;
  }

  async #submit() {
    const changes = this.#changes();
    if (!changes) return;
    if (this.#task && !Object.keys(changes).length) {
      this.dispatchEvent(new Event("abandon"));
      return;
    }
    let saved = null;
    await attempt(this.#save, this.#refused, async () => {
      try {
        saved = this.#task
          ? await patch(this.#path(), { ...changes, if_version: this.#version })
          : await post("/api/tasks", changes);
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        if (error.details.reason === "version") await this.#meet();
        else if (!this.#blame(error)) throw error;
      }
    });
    if (!saved) return;
    this.clear();
    this.dispatchEvent(new CustomEvent("saved", { detail: { task: saved.data.task, warnings: saved.warnings } }));
  }

  /** Shows a refusal at the field that it names; false where it names none. */
  #blame(error) {
    const control = controlFor(this.#controls, error.details.field);
    if (!control) return false;
    control.complain([error.message, error.hint].filter(Boolean).join(" "));
    control.input.focus();
    return true;
  }

  /** Somebody else was quicker: keeps what was typed, takes in the rest, and shows what changed. */
  async #meet() {
    const { data } = await get(this.#path());
    const touched = new Set([...this.#controls.keys()].filter((name) => this.#isTouched(name)));
    const before = this.#task;
    this.#task = data.task;
    this.#version = data.task.version;
    for (const name of this.#controls.keys()) if (!touched.has(name)) this.#fill(name, data.task[name]);
    const anyway = h("button", { type: "submit", class: "button" }, "Apply mine anyway");
    const theirs = h("button", { type: "button", class: "button button-quiet", on: { click: () => this.open(data.task) } }, "Take theirs");
    fill(this.#conflict, h("section", { class: "action-panel action-panel-conflict" },
      h("h3", { class: "part-title" }, icon("warning"), "The task changed while you were editing"),
      changedMeanwhile(before, data.task, touched),
      h("div", { class: "action-row" }, anyway, theirs)));
    this.#save.hidden = true; // one button for it, beside what it overrules
    anyway.focus({ preventScroll: true });
    this.#conflict.scrollIntoView({ block: "nearest" });
  }

  #path() {
    return `/api/tasks/${encodeURIComponent(this.#task.id)}`;
  }
}

customElements.define("atb-task-form", TaskForm);
