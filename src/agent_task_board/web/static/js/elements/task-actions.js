/** The actions that a task's status allows: the review box, the row of buttons and the panel that a button opens. */

import { post } from "../api.js";
import { fill, h, icon } from "../dom.js";
import { swap } from "../live-part.js";
import { quotedName } from "../printable.js";
import { refusalBox, runAction } from "../refusal.js";
import { isFinal, isHeld } from "../status.js";
import { store } from "../store.js";
import { toast } from "./toast.js";

/** Set the task with `show(task)`; fires "acted" after a write and "edit" to open the form. */
export class TaskActions extends HTMLElement {
  #task = null;
  #allowed = "";
  #acting = false; // a write is in progress; the board may show its effect before its response arrives
  #review = h("div", {});
  #panel = h("div", { dataset: { action: "" } });
  #row = h("div", { class: "action-row", role: "group", "aria-label": "Actions" });
  #refused = refusalBox();

  connectedCallback() {
    fill(this, this.#review, this.#row, this.#refused.node, this.#panel);
  }

  /** Whether there is an unsent note. */
  get dirty() {
    return [...this.querySelectorAll("textarea")].some((text) => text.value.trim());
  }

  /** Shows the actions that the task's status allows. An open panel stays open while its action is allowed. */
  show(task) {
    const other = task.id !== this.#task?.id;
    this.#task = task;
    const actions = store.readOnly ? [] : allowed(task);
    const names = actions.join(" ");
    if (!other && names === this.#allowed) return;
    this.#allowed = names;
    const gone = (name) => other || !actions.includes(name);
    if (!other) {
      if (gone(this.#panel.dataset.action)) this.#saveLeftover(this.#panel);
      if (gone("review")) this.#saveLeftover(this.#review);
    }
    if (gone(this.#panel.dataset.action)) this.#openPanel("");
    if (gone("review")) this.#review.replaceChildren();
    if (actions.includes("review") && !this.#review.hasChildNodes()) fill(this.#review, this.#createPanel("review"));
    this.#refused.clear();
    swap(this.#row, ...actions.filter((name) => name !== "review").map((name) => this.#button(name)));
    this.#row.hidden = !this.#row.hasChildNodes();
    this.hidden = actions.length === 0;
  }

  /** Call before a panel closes because its action is no longer allowed: shows its error as a toast and keeps typed text. */
  #saveLeftover(panel) {
    const alert = [...panel.querySelectorAll("[role=alert]")].find((box) => !box.hidden && box.textContent.trim());
    if (alert) toast(alert.textContent, { kind: "error" });
    const typed = [...panel.querySelectorAll("textarea")].map((text) => text.value).join("\n").trim();
    if (!typed || (this.#acting && !alert)) return;
    this.dispatchEvent(new CustomEvent("leftover", { bubbles: true, detail: typed }));
  }

  /** Forgets the shown task and its panels. */
  clear() {
    this.#task = null;
    this.#allowed = "";
  }

  /** Drops typed text. */
  discard() {
    for (const text of this.querySelectorAll("textarea")) text.value = "";
  }

  #button(name) {
    const { label, icon: picture } = BUTTONS[name];
    const button = h("button", { type: "button", class: "button", dataset: { action: name } }, icon(picture), label);
    button.addEventListener("click", () => {
      if (name === "edit") this.dispatchEvent(new CustomEvent("edit", { bubbles: true }));
      else if (name === "retry") this.#send(button, this.#refused, "retry", {}, "Queued again");
      else this.#togglePanel(name, button);
    });
    if (name in PANELS) button.setAttribute("aria-expanded", String(this.#panel.dataset.action === name));
    return button;
  }

  #togglePanel(name, button) {
    this.#refused.clear();
    const opens = this.#panel.dataset.action !== name;
    this.#openPanel(opens ? name : "");
    if (opens) this.#panel.querySelector("input, textarea").focus();
    else button.focus();
  }

  #openPanel(name) {
    this.#panel.dataset.action = name;
    fill(this.#panel, name && this.#createPanel(name));
    for (const button of this.#row.querySelectorAll("[aria-expanded]")) {
      button.setAttribute("aria-expanded", String(button.dataset.action === name));
    }
  }

  #createPanel(name) {
    const close = () => {
      this.#openPanel("");
      this.#row.querySelector(`[data-action="${name}"]`)?.focus();
    };
    return PANELS[name](this.#task, { act: (...call) => this.#send(...call), close });
  }

  /** Sends one action to the server and reports the outcome. */
  async #send(button, box, verb, fields, message) {
    const id = this.#task.id;
    this.#acting = true;
    const done = await runAction(button, box, async () => {
      const { warnings } = await post(`/api/tasks/${encodeURIComponent(id)}/${verb}`, fields);
      toast([message, ...warnings].join(". "), { kind: "done" });
    });
    this.#acting = false;
    if (!done) {
      if (!box.node.isConnected) toast(box.node.textContent, { kind: "error" }); // its panel has closed meanwhile
      return;
    }
    if (id === this.#task.id) {
      this.discard();
      this.#openPanel("");
    }
    this.dispatchEvent(new CustomEvent("acted", { bubbles: true }));
  }
}

const BUTTONS = {
  edit: { label: "Edit", icon: "edit" },
  reassign: { label: "Reassign", icon: "reassign" },
  retry: { label: "Retry", icon: "retry" },
  cancel: { label: "Cancel task", icon: "cancel" },
};

function allowed(task) {
  const held = isHeld(task);
  return [
    task.status === "review" && "review",
    !isFinal(task) && "edit",
    (task.status === "queued" || held) && "reassign",
    (task.status === "failed" || task.status === "cancelled") && "retry",
    !isFinal(task) && "cancel",
  ].filter(Boolean);
}

const PANELS = {
  /** Approving needs no note. Rejecting does, because the next agent starts from it. */
  review(task, { act }) {
    const box = refusalBox();
    const note = noteField("review-note", "Note", "Required to reject: say what is missing.");
    const approve = h("button", { type: "button", class: "button button-primary" }, icon("approve"), "Approve");
    const reject = h("button", { type: "button", class: "button" }, icon("return"), "Reject");
    note.text.addEventListener("input", () => note.invalid(false));
    approve.addEventListener("click", () => act(approve, box, "approve", withNote(note), "Approved"));
    reject.addEventListener("click", () => {
      if (note.value) return act(reject, box, "reject", { note: note.value }, "Rejected and queued again");
      note.invalid(true);
      return note.text.focus();
    });
    return h("section", { class: "action-panel action-panel-review is-review" },
      h("h3", { class: "part-title" }, icon("review"), "Needs your review"),
      note.node, box.node,
      h("div", { class: "action-row" }, approve, reject));
  },

  reassign(task, { act, close }) {
    const box = refusalBox();
    const to = h("input", { id: "reassign-to", class: "input", list: "known-agents", dir: "auto", autocomplete: "off", value: task.assignee ?? "", "aria-describedby": "reassign-hint" });
    const note = noteField("action-note", "Note (optional)");
    const send = h("button", { type: "submit", class: "button button-primary" }, "Reassign");
    const warning = isHeld(task) && h("p", { class: "action-warning" }, icon("warning"),
      h("span", {}, h("bdi", {}, quotedName(task.claimed_by)), " is working on this task and will lose the lease."));
    return panel("Reassign task", () => act(send, box, "reassign", { to: to.value.trim() || "none", ...withNote(note) }, "Reassigned"),
      warning,
      h("div", { class: "field" }, h("label", { for: "reassign-to" }, "Assign to"), to, h("p", { class: "hint", id: "reassign-hint" }, "Leave empty to let any agent claim it."), knownAgents()),
      note.node, box.node,
      h("div", { class: "action-row" }, send, quietButton("Back", close)));
  },

  cancel(task, { act, close }) {
    const box = refusalBox();
    const note = noteField("action-note", "Note (optional)");
    const send = h("button", { type: "submit", class: "button button-danger" }, "Yes, cancel it");
    const dependents = store.dependents(task.id).length;
    const warning = dependents > 0 && h("p", { class: "action-warning" }, icon("warning"),
      dependents === 1 ? "One task depends on it and will stay blocked." : `${dependents} tasks depend on it and will stay blocked.`);
    return panel("Cancel this task?", () => act(send, box, "cancel", withNote(note), "Cancelled"),
      warning, note.node, box.node,
      h("div", { class: "action-row" }, send, quietButton("Keep task", close)));
  },
};

function panel(title, send, ...content) {
  const form = h("form", { class: "action-panel", "aria-label": title }, h("h3", { class: "part-title" }, title), ...content);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  return form;
}

function quietButton(label, close) {
  return h("button", { type: "button", class: "button button-quiet", on: { click: close } }, label);
}

/** The agents on this board, as suggestions for a field with `list: "known-agents"`. */
export function knownAgents() {
  return h("datalist", { id: "known-agents" }, ...[...store.agents.keys()].map((name) => h("option", { value: name })));
}

function noteField(id, label, hint) {
  const text = h("textarea", { id, rows: 2, dir: "auto", "aria-describedby": hint ? `${id}-hint` : null });
  const hintText = hint ? h("p", { class: "hint", id: `${id}-hint` }, hint) : null;
  return {
    text,
    node: h("div", { class: "field" }, h("label", { for: id }, label), text, hintText),
    get value() {
      return text.value.trim() ? text.value : "";
    },
    invalid(wrong) {
      text.setAttribute("aria-invalid", String(wrong));
      if (wrong) hintText.setAttribute("role", "alert");
      else hintText.removeAttribute("role");
      hintText.classList.toggle("field-error", wrong);
      if (wrong) hintText.textContent = hint; // makes screen readers announce it again
    },
  };
}

function withNote(note) {
  return note.value ? { note: note.value } : {};
}

customElements.define("atb-task-actions", TaskActions);
