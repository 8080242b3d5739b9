/** Calls to the server: one function per HTTP method, one error class. */

let boardTag = "";
let actor = "";

/** An error answer of the server; `code` is one of docs/errors.md, or "offline". */
export class Refusal extends Error {
  constructor({ code, message, hint = "", details = {}, status = 0 }) {
    super(message);
    this.name = "Refusal";
    this.code = code;
    this.hint = hint ?? "";
    this.details = details ?? {};
    this.status = status;
  }
}

/** Sets the name sent with every write. If it is empty, the server uses its own actor. */
export function setActor(name) {
  actor = name;
}

/** GET; resolves to {data, warnings}. */
export function get(path, { signal } = {}) {
  return call(path, { signal });
}

/** POST a JSON object; resolves to {data, warnings}. */
export function post(path, body = {}) {
  return write("POST", path, body);
}

/** Signs this browser in with a one-time code; the server sets a cookie that scripts cannot read. */
export function signIn(code) {
  return call("/api/session", json("POST", { code }));
}

/** Signs this browser out. */
export function signOut() {
  return call("/api/session/end", json("POST", {}));
}

/** PATCH a JSON object; resolves to {data, warnings}. */
export function patch(path, body = {}) {
  return write("PATCH", path, body);
}

/** The board, or null if nothing changed since the last call; `cost` is the parsing time in milliseconds. */
export async function getBoard() {
  const headers = boardTag ? { "If-None-Match": boardTag } : {};
  const response = await send("/api/board", { headers });
  if (response.status === 304) return null;
  const tag = response.headers.get("ETag") ?? "";
  const text = await body(response);
  const started = performance.now();
  const envelope = parse(text, response.status);
  const cost = performance.now() - started;
  refuse(envelope, response.status);
  boardTag = tag;
  return { ...envelope.data, warnings: envelope.warnings ?? [], cost };
}

/** Forgets the board's tag, so that the next getBoard answers in full. */
export function forgetBoard() {
  boardTag = "";
}

function write(method, path, fields) {
  const payload = actor && !("actor" in fields) ? { ...fields, actor } : fields;
  return call(path, json(method, payload));
}

function json(method, fields) {
  return { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(fields) };
}

async function call(path, options) {
  const response = await send(path, options);
  const envelope = parse(await body(response), response.status);
  refuse(envelope, response.status);
  return { data: envelope.data, warnings: envelope.warnings ?? [] };
}

async function send(path, options) {
  try {
    return await fetch(path, { cache: "no-store", ...options });
  } catch (error) {
    throw offline(error);
  }
}

async function body(response) {
  try {
    return await response.text();
  } catch (error) {
    throw offline(error);
  }
}

function offline(error) {
  if (error.name === "AbortError") return error;
  return new Refusal({ code: "offline", message: "The server is not responding.", hint: "Check that `atb serve` is still running." });
}

function parse(text, status) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Refusal({ code: "internal", message: `Cannot read the server's response (HTTP ${status}).`, status });
  }
}

function refuse(envelope, status) {
  if (!envelope.ok) throw new Refusal({ ...envelope.error, status });
}
