/** The form for a new task, or for an edit that sends only the changed fields. */

import { get, patch, post, Refusal } from "../api.js";
import { fill, h, icon } from "../dom.js";
import { controlFor, FIELDS, createControl, InvalidValue } from "../form-controls.js";
import { refusalBox, runAction } from "../refusal.js";
import { changedMeanwhile } from "./task-conflict.js";

/** Call `open(task)`, or `open(null)` for a new task; fires "saved" (detail {task, warnings}) and "abandon". */
export class TaskForm extends HTMLElement {
  #task = null;
  #version = 0;
  #controls = new Map();
  #initial = new Map(); // what each control read when it was filled; a different value has been edited
  #refused = refusalBox();
  #conflict = h("div", { role: "alert" });
  #save = null;

  /** Renders the form and focuses the title. */
  open(task) {
    this.#task = task;
    this.#version = task?.version ?? 0;
    this.#refused.clear();
    this.#conflict.replaceChildren();
    // The assignee can be edited only while the task is queued. Later, changing it is a reassign, which revokes the lease.
    const fields = FIELDS.filter((field) => !(field.name === "assignee" && task && task.status !== "queued"));
    this.#controls = new Map(fields.map((field) => [field.name, createControl(field, { self: task?.id })]));
    for (const name of this.#controls.keys()) this.#fill(name, task?.[name] ?? null);
    this.#save = h("button", { type: "submit", class: "button button-primary" }, task ? "Save" : "Add task");
    const form = h("form", { class: "task-form", noValidate: true, "aria-label": task ? "Edit task" : "New task" },
      h("div", { class: "form-grid" }, ...[...this.#controls.values()].map((control) => control.node)),
      this.#conflict,
      this.#refused.node,
      h("div", { class: "form-end" },
        h("span", { class: "hint" }, "Press Ctrl+Enter to save."),
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

  /** Whether there are unsaved changes. */
  get dirty() {
    return [...this.#controls.keys()].some((name) => this.#isTouched(name));
  }

  /** Removes the form and drops the changes. */
  clear() {
    this.#controls.clear();
    this.replaceChildren();
  }

  #fill(name, value) {
    const control = this.#controls.get(name);
    control.write(value);
    this.#initial.set(name, this.#text(control));
  }

  #text(control) {
    try {
      return JSON.stringify(control.read());
    } catch (error) {
      if (error instanceof InvalidValue) return error.message;
      throw error;
    }
  }

  #isTouched(name) {
    return this.#text(this.#controls.get(name)) !== this.#initial.get(name);
  }

  /** The fields to send, or null if one is invalid; that field then shows an error. */
  #changes() {
    const changes = {};
    let wrong = null;
    for (const [name, control] of this.#controls) {
      control.setError(null);
      try {
        const value = control.read();
        if (this.#isTouched(name)) changes[name] = value;
      } catch (error) {
        if (!(error instanceof InvalidValue)) throw error;
        control.setError(error.message);
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
    await runAction(this.#save, this.#refused, async () => {
      try {
        saved = this.#task
          ? await patch(this.#path(), { ...changes, if_version: this.#version })
          : await post("/api/tasks", changes);
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        if (error.details.reason === "version") await this.#showConflict();
        else if (!this.#showAtField(error)) throw error;
      }
    });
    if (!saved) return;
    this.clear();
    this.dispatchEvent(new CustomEvent("saved", { detail: { task: saved.data.task, warnings: saved.warnings } }));
  }

  /** Shows a refusal at the field that it names; returns false if it names no field of the form. */
  #showAtField(error) {
    const control = controlFor(this.#controls, error.details.field);
    if (!control) return false;
    control.setError([error.message, error.hint].filter(Boolean).join(" "));
    control.input.focus();
    return true;
  }

  /** The task changed meanwhile: keeps edited fields, updates the others, and shows what changed. */
  async #showConflict() {
    const { data } = await get(this.#path());
    const touched = new Set([...this.#controls.keys()].filter((name) => this.#isTouched(name)));
    const before = this.#task;
    this.#task = data.task;
    this.#version = data.task.version;
    for (const name of this.#controls.keys()) if (!touched.has(name)) this.#fill(name, data.task[name]);
    const overwrite = h("button", { type: "submit", class: "button" }, "Save my changes anyway");
    const discard = h("button", { type: "button", class: "button button-quiet", on: { click: () => this.open(data.task) } }, "Discard my changes");
    fill(this.#conflict, h("section", { class: "action-panel action-panel-conflict" },
      h("h3", { class: "part-title" }, icon("warning"), "The task changed while you were editing"),
      changedMeanwhile(before, data.task, touched),
      h("div", { class: "action-row" }, overwrite, discard)));
    this.#save.hidden = true; // "Save my changes anyway" replaces it
    overwrite.focus({ preventScroll: true });
    this.#conflict.scrollIntoView({ block: "nearest" });
  }

  #path() {
    return `/api/tasks/${encodeURIComponent(this.#task.id)}`;
  }
}

customElements.define("atb-task-form", TaskForm);
