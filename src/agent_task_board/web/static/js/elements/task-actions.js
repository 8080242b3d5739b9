/** What a person may do with a task in its present status: the review box, the row of buttons, the panel that a button opens. */

import { post } from "../api.js";
import { fill, h, icon } from "../dom.js";
import { swap } from "../live-part.js";
import { attempt, refusalBox } from "../refusal.js";
import { isFinal, isHeld } from "../status.js";
import { store } from "../store.js";
import { toast } from "./toast.js";

/** Give it the task with `show(task)`; fires "acted" after a write and "edit" when the form is wanted. */
export class TaskActions extends HTMLElement {
  #task = null;
  #allowed = "";
  #acting = false; // a write is under way: its outcome may be seen here before its answer
  #review = h("div", {});
  #panel = h("div", { dataset: { action: "" } });
  #row = h("div", { class: "action-row", role: "group", "aria-label": "Actions" });
  #refused = refusalBox();

  connectedCallback() {
    fill(this, this.#review, this.#row, this.#refused.node, this.#panel);
  }

  /** Whether a note was typed that was not sent. */
  get dirty() {
    return [...this.querySelectorAll("textarea")].some((text) => text.value.trim());
  }

  /** Shows what the task's status allows; a panel in use stays while its action is still allowed. */
  show(task) {
    const other = task.id !== this.#task?.id;
    this.#task = task;
    const actions = store.readOnly ? [] : allowed(task);
    const names = actions.join(" ");
    if (!other && names === this.#allowed) return;
    this.#allowed = names;
    const gone = (name) => other || !actions.includes(name);
    if (!other) {
      if (gone(this.#panel.dataset.action)) this.#leaves(this.#panel);
      if (gone("review")) this.#leaves(this.#review);
    }
    if (gone(this.#panel.dataset.action)) this.#openPanel("");
    if (gone("review")) this.#review.replaceChildren();
    if (actions.includes("review") && !this.#review.hasChildNodes()) fill(this.#review, this.#make("review"));
    this.#refused.clear();
    swap(this.#row, ...actions.filter((name) => name !== "review").map((name) => this.#button(name)));
    this.#row.hidden = !this.#row.hasChildNodes();
    this.hidden = actions.length === 0;
  }

  /** A panel goes that its task no longer allows: what it was refused is said, and what was typed there is kept. */
  #leaves(panel) {
    const said = [...panel.querySelectorAll("[role=alert]")].find((box) => !box.hidden && box.textContent.trim());
    if (said) toast(said.textContent, { kind: "error" });
    const typed = [...panel.querySelectorAll("textarea")].map((text) => text.value).join("\n").trim();
    if (!typed || (this.#acting && !said)) return;
    this.dispatchEvent(new CustomEvent("leftover", { bubbles: true, detail: typed }));
  }

  /** Forgets the task shown, with its panels. */
  clear() {
    this.#task = null;
    this.#allowed = "";
  }

  /** Drops what was typed. */
  discard() {
    for (const text of this.querySelectorAll("textarea")) text.value = "";
  }

  #button(name) {
    const { label, icon: picture } = BUTTONS[name];
    const button = h("button", { type: "button", class: "button", dataset: { action: name } }, icon(picture), label);
    button.addEventListener("click", () => {
      if (name === "edit") this.dispatchEvent(new CustomEvent("edit", { bubbles: true }));
      else if (name === "retry") this.#do(button, this.#refused, "retry", {}, "Queued again");
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
    fill(this.#panel, name && this.#make(name));
    for (const button of this.#row.querySelectorAll("[aria-expanded]")) {
      button.setAttribute("aria-expanded", String(button.dataset.action === name));
    }
  }

  #make(name) {
    const close = () => {
      this.#openPanel("");
      this.#row.querySelector(`[data-action="${name}"]`)?.focus();
    };
    return PANELS[name](this.#task, { act: (...call) => this.#do(...call), close });
  }

  /** Asks the server for one verb; says what came of it. */
  async #do(button, box, verb, fields, said) {
    const id = this.#task.id;
    this.#acting = true;
    const done = await attempt(button, box, async () => {
      const { warnings } = await post(`/api/tasks/${encodeURIComponent(id)}/${verb}`, fields);
      toast([said, ...warnings].join(". "), { kind: "done" });
    });
    this.#acting = false;
    if (!done) {
      if (!box.node.isConnected) toast(box.node.textContent, { kind: "error" }); // its panel went meanwhile
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
  /** Approve with or without a note; return only with one, since the next agent starts from it. */
  review(task, { act }) {
    const box = refusalBox();
    const note = noteField("review-note", "Note", "Needed to return the work: say what is missing.");
    const approve = h("button", { type: "button", class: "button button-primary" }, icon("approve"), "Approve");
    const back = h("button", { type: "button", class: "button" }, icon("return"), "Return");
    note.text.addEventListener("input", () => note.invalid(false));
    approve.addEventListener("click", () => act(approve, box, "approve", withNote(note), "Approved"));
    back.addEventListener("click", () => {
      if (note.value) return act(back, box, "reject", { note: note.value }, "Returned to the queue");
      note.invalid(true);
      return note.text.focus();
    });
    return h("section", { class: "action-panel action-panel-review is-review" },
      h("h3", { class: "part-title" }, icon("review"), "Waits for your decision"),
      note.node, box.node,
      h("div", { class: "action-row" }, approve, back));
  },

  reassign(task, { act, close }) {
    const box = refusalBox();
    const to = h("input", { id: "reassign-to", class: "input", list: "known-agents", dir: "auto", autocomplete: "off", value: task.assignee ?? "", "aria-describedby": "reassign-hint" });
    const note = noteField("action-note", "Note (optional)");
    const send = h("button", { type: "submit", class: "button button-primary" }, "Reassign");
    const taken = isHeld(task) && h("p", { class: "action-warning" }, icon("warning"),
      h("span", {}, h("bdi", {}, task.claimed_by), " works on it now and loses the lease."));
    return panel("Reassign the task", () => act(send, box, "reassign", { to: to.value.trim() || "none", ...withNote(note) }, "Reassigned"),
      taken,
      h("div", { class: "field" }, h("label", { for: "reassign-to" }, "To the agent"), to, h("p", { class: "hint", id: "reassign-hint" }, "Empty: any agent may claim it."), knownAgents()),
      note.node, box.node,
      h("div", { class: "action-row" }, send, keep("Leave it", close)));
  },

  cancel(task, { act, close }) {
    const box = refusalBox();
    const note = noteField("action-note", "Note (optional)");
    const send = h("button", { type: "submit", class: "button button-danger" }, "Cancel the task");
    const waiting = store.dependents(task.id).length;
    const stays = waiting > 0 && h("p", { class: "action-warning" }, icon("warning"),
      waiting === 1 ? "One task waits for it and stays blocked." : `${waiting} tasks wait for it and stay blocked.`);
    return panel("Cancel this task?", () => act(send, box, "cancel", withNote(note), "Cancelled"),
      stays, note.node, box.node,
      h("div", { class: "action-row" }, send, keep("Keep it", close)));
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

function keep(label, close) {
  return h("button", { type: "button", class: "button button-quiet", on: { click: close } }, label);
}

/** The agents that the board knows, as suggestions of a field with `list: "known-agents"`. */
export function knownAgents() {
  return h("datalist", { id: "known-agents" }, ...[...store.agents.keys()].map((name) => h("option", { value: name })));
}

function noteField(id, label, hint) {
  const text = h("textarea", { id, rows: 2, dir: "auto", "aria-describedby": hint ? `${id}-hint` : null });
  const said = hint ? h("p", { class: "hint", id: `${id}-hint` }, hint) : null;
  return {
    text,
    node: h("div", { class: "field" }, h("label", { for: id }, label), text, said),
    get value() {
      return text.value.trim() ? text.value : "";
    },
    invalid(wrong) {
      text.setAttribute("aria-invalid", String(wrong));
      if (wrong) said.setAttribute("role", "alert");
      else said.removeAttribute("role");
      said.classList.toggle("field-error", wrong);
      if (wrong) said.textContent = hint; // spoken anew
    },
  };
}

function withNote(note) {
  return note.value ? { note: note.value } : {};
}

customElements.define("atb-task-actions", TaskActions);
