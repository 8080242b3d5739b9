/** The page's only copy of the board: polls the server and fires events about changes. */

import { forgetBoard, get, getBoard, Refusal, setActor } from "./api.js";
import { isHeld } from "./status.js";
import { setZone } from "./time.js";

const VISIBLE_WAIT = 500;
const HIDDEN_WAIT = 30_000;
const HEALTH_PAUSE = 10_000;
const LONGEST_WAIT = 10_000;
const AGENTS_PAUSE = 1500;
const NAME_KEY = "atb-name";

/** The fields whose change redraws a card. A renewal changes lease_expires_at, but not the version. */
const WATCHED = ["version", "status", "progress", "lease_expires_at", "ready", "blocked", "stuck", "delayed", "lease_expired", "overdue", "claimed_by"];

class Store extends EventTarget {
  tasks = new Map();
  /** All tasks in the server's order: unfinished first, then finished, newest first. */
  sorted = [];
  counts = {};
  truncated = false;
  /** The server's warnings, for example that its data directory has no board yet. */
  warnings = [];
  revision = -1;
  timezone = "UTC";
  agents = new Map();
  /** Task id → {...hold of /api/agents, agent: name}: progress, latest note, last renewal. */
  holds = new Map();
  /** False until the agents have loaded; until then, no holder can be shown as silent. */
  holdsLoaded = false;
  /** Stuck task id → {id, title, status} of the failed or cancelled task that it waits for. */
  stuck = {};
  /** Returned task id → {by, at, note}: who rejected its work. */
  returned = {};
  readOnly = false;
  /** The absolute path of the data directory; "" until it has loaded. */
  dataDir = "";
  version = "";
  online = true;
  /** True once a board has loaded. */
  loaded = false;
  /** The Refusal that prevents showing the board (unusable, not_found), or null. */
  failure = null;
  me = remembered(NAME_KEY);

  #timer = 0;
  #polling = null;
  #pollAgain = false;
  #failures = 0;
  #cost = 0;
  #healthAt = -Infinity;
  #dependents = null;
  #agentsAt = 0;
  #agentsTimer = 0;

  constructor() {
    super();
    setActor(this.me);
  }

  /** Starts polling; called once. */
  start() {
    document.addEventListener("visibilitychange", () => this.refresh());
    addEventListener("online", () => this.refresh());
    addEventListener("offline", () => this.#setOnline(false));
    return Promise.all([this.refresh(), this.#readHealth(), this.#readAgents()]);
  }

  /** The task as the board shows it, or undefined. */
  task(id) {
    return this.tasks.get(id);
  }

  /** Ids of the shown tasks that depend on this one. */
  dependents(id) {
    this.#dependents ??= this.#dependentsById();
    return this.#dependents.get(id) ?? [];
  }

  /** Sets the name sent with this person's writes; with "" the server uses its own actor. */
  setMe(name) {
    this.me = name.trim();
    remember(NAME_KEY, this.me);
    setActor(this.me);
    this.dispatchEvent(new Event("settings"));
  }

  /** Polls the server now; resolves when the answer has been applied. */
  async refresh() {
    if (this.#polling) {
      this.#pollAgain = true;
      return this.#polling;
    }
    clearTimeout(this.#timer);
    this.#polling = this.#poll();
    try {
      await this.#polling;
    } finally {
      this.#polling = null;
    }
    if (this.#pollAgain) {
      this.#pollAgain = false;
      return this.refresh();
    }
    this.#timer = setTimeout(() => this.refresh(), this.#wait());
  }

  async #poll() {
    try {
      const board = await getBoard();
      const healthIsFresh = performance.now() - this.#healthAt < HEALTH_PAUSE;
      if (!healthIsFresh || !this.online || this.failure) await this.#readHealth();
      this.#failures = 0;
      this.#setOnline(true);
      if (board) this.#apply(board);
      else {
        this.#cost = 0;
        this.#setFailure(null);
      }
    } catch (error) {
      this.#failures += 1;
      forgetBoard();
      if (!(error instanceof Refusal)) throw error;
      if (error.code === "offline") this.#setOnline(false);
      else if (error.code !== "busy") this.#setFailure(error);
    }
  }

  #wait() {
    if (document.hidden) return HIDDEN_WAIT;
    if (this.#failures) return Math.min(VISIBLE_WAIT * 2 ** this.#failures, 5000);
    return Math.min(Math.max(VISIBLE_WAIT, this.#cost * 6), LONGEST_WAIT);
  }

  #apply(board) {
    const started = performance.now();
    const before = this.tasks;
    const changed = new Set();
    const tasks = new Map();
    const sorted = board.tasks;
    for (let index = 0; index < sorted.length; index += 1) {
      const task = sorted[index];
      const old = before.get(task.id);
      if (old && same(old, task)) sorted[index] = old;
      else changed.add(task.id);
      tasks.set(task.id, sorted[index]);
    }
    const removed = new Set();
    if (before.size !== tasks.size || changed.size) {
      for (const id of before.keys()) if (!tasks.has(id)) removed.add(id);
    }
    const first = !this.loaded;
    Object.assign(this, { tasks, sorted, loaded: true, failure: null });
    const { counts, truncated, revision, timezone, warnings, stuck = {}, returned = {} } = board;
    Object.assign(this, { counts, truncated, revision, timezone, warnings, stuck, returned });
    this.#dependents = null;
    setZone(timezone);
    this.dispatchEvent(new CustomEvent("tasks", { detail: { changed, removed, before, first } }));
    this.#cost = first ? 0 : board.cost + performance.now() - started; // the first one includes creating the page
    this.#scheduleAgents();
  }

  /** Limits requests for the agents, however fast the board changes. */
  #scheduleAgents() {
    if (this.#agentsTimer) return;
    const wait = Math.max(0, this.#agentsAt + AGENTS_PAUSE - performance.now());
    this.#agentsTimer = setTimeout(() => this.#readAgents(), wait);
  }

  async #readAgents() {
    try {
      const { data } = await get("/api/agents");
      const agents = new Map(data.agents.map((agent) => [agent.name, agent]));
      const holds = new Map();
      for (const agent of data.agents) {
        for (const hold of agent.holds) holds.set(hold.id, { ...hold, agent: agent.name });
      }
      const changed = changedHolds(this.holds, holds);
      if (!this.holdsLoaded) for (const id of this.#heldIds()) changed.add(id);
      Object.assign(this, { agents, holds, holdsLoaded: true });
      this.dispatchEvent(new CustomEvent("agents", { detail: { changed } }));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
    } finally {
      this.#agentsAt = performance.now();
      this.#agentsTimer = 0;
    }
  }

  async #readHealth() {
    try {
      this.#healthAt = performance.now();
      const { data } = await get("/healthz");
      if (data.version === this.version && data.read_only === this.readOnly && (data.data_dir ?? "") === this.dataDir) return;
      Object.assign(this, { version: data.version, readOnly: data.read_only, dataDir: data.data_dir ?? "" });
      this.dispatchEvent(new Event("settings"));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
    }
  }

  #heldIds() {
    return this.sorted.filter(isHeld).map(({ id }) => id);
  }

  #setOnline(online) {
    if (online === this.online) return;
    this.online = online;
    this.dispatchEvent(new Event("online"));
  }

  #setFailure(failure) {
    if (failure?.code === this.failure?.code && failure?.message === this.failure?.message) return;
    this.failure = failure;
    this.dispatchEvent(new Event("online"));
  }

  #dependentsById() {
    const dependents = new Map();
    for (const task of this.sorted) {
      for (const id of task.blocked_by) {
        const list = dependents.get(id);
        if (list) list.push(task.id);
        else dependents.set(id, [task.id]);
      }
    }
    return dependents;
  }
}

function same(old, task) {
  for (const key of WATCHED) if (old[key] !== task[key]) return false;
  return true;
}

function changedHolds(before, after) {
  const changed = new Set();
  for (const [id, hold] of after) {
    const old = before.get(id);
    if (!old || old.note !== hold.note || old.renewed_at !== hold.renewed_at || old.progress !== hold.progress) changed.add(id);
  }
  for (const id of before.keys()) if (!after.has(id)) changed.add(id);
  return changed;
}

/** Reads a setting of this browser; "" when there is none or storage is off. */
export function remembered(key) {
  try {
    return localStorage.getItem(key) ?? "";
  } catch {
    return "";
  }
}

/** Stores a setting in this browser, if storage is allowed; "" deletes it. */
export function remember(key, value) {
  try {
    if (value) localStorage.setItem(key, value);
    else localStorage.removeItem(key);
  } catch {
    // Private windows may refuse storage. The setting then lasts as long as the page.
  }
}

/**
 * The state of a lease: {length, left, fraction, expired, silent, silentFor}, times in milliseconds; null if no agent holds the task.
 * `silent`: the instant has passed after which the service calls the holder silent, or the lease has expired.
 */
export function lease(task, at = Date.now()) {
  if (!isHeld(task) || !task.lease_expires_at) return null;
  const hold = store.holds.get(task.id);
  const known = store.holdsLoaded;
  const own = hold?.agent === task.claimed_by ? hold : null;
  const renewed = Date.parse(own?.renewed_at || task.claimed_at);
  const ends = Date.parse(task.lease_expires_at);
  const length = Math.max(1, ends - renewed);
  const left = ends - at;
  const expired = left <= 0;
  const fraction = expired ? 0 : known ? Math.min(1, left / length) : 1;
  return { length, left, fraction, expired, silent: expired || Boolean(own && at > Date.parse(own.silent_at)), silentFor: Math.max(0, at - renewed) };
}

/**
 * Events: "tasks" (detail {changed, removed: Sets of ids; before: the old Map; first: whether this is the first board}),
 * "agents" (detail {changed}), "online" (connection or failure changed), "settings" (name, version or read-only changed).
 */
export const store = new Store();
