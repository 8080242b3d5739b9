/** Inline Markdown: code, emphasis, links. One pass with bounded backtracking, so hostile text costs no more. */

import { h } from "./dom.js";

const NESTING = 16; // maximum levels of emphasis within emphasis
const ADDRESS = 2048; // longest "(https://…)" recognized
const ESCAPABLE = /[!-/:-@[-`{-~]/;
const SPACE = /\s/u;
const PUNCTUATION = /[\p{P}\p{S}]/u;
// Chinese and Japanese have no spaces around emphasis: their characters delimit it as punctuation does.
const BOUNDARY = /[\s\p{P}\p{S}\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u;
const BARE_LINK = /https?:\/\/[^\s<>"'`\]\\]+/iy;
const ANGLE_LINK = /<(https?:\/\/[^\s<>]{1,2000})>/iy;
const WEB = /^<?https?:\/\//i;

/** Inline Markdown as a list of nodes and strings. */
export function inline(text) {
  return new Scanner(text).scan();
}

/** A link to another site, or null if the address is not http(s). */
export function webLink(address, ...children) {
  let url;
  try {
    url = new URL(address);
  } catch {
    return null;
  }
  if (url.protocol !== "https:" && url.protocol !== "http:") return null;
  return h("a", { href: url.href, title: url.href, target: "_blank", rel: "noopener noreferrer" }, ...children);
}

/** Replaces an element by its children. (A call with spread arguments would overflow the stack for very many.) */
export function unwrap(element) {
  while (element.firstChild) element.before(element.firstChild);
  element.remove();
}

class Scanner {
  constructor(text) {
    this.text = text;
    this.out = []; // strings, elements, and markers that may still become emphasis or a link
    this.openers = []; // indices in `out` of open emphasis markers
    this.floor = {}; // per marker: no opener below this height of the stack
    this.brackets = []; // indices in `out` of "["
    this.depths = new Map(); // nesting depth of the elements in `out`
    this.ticks = null;
    this.parens = null;
    this.plain = 0;
    this.at = 0;
  }

  scan() {
    const { text } = this;
    while (this.at < text.length) {
      const step = this.step(text[this.at]);
      if (!step) this.at += 1;
    }
    this.skip(0);
    return this.out.map(asNode);
  }

  /** Handles the markup that starts here; returns true if it advanced. */
  step(char) {
    switch (char) {
      case "\\": return this.escape();
      case "`": return this.code();
      case "*":
      case "_":
      case "~": return this.emphasis(char);
      case "[":
      case "!": return this.bracket(char);
      case "]": return this.closeBracket();
      case "<": return this.found(ANGLE_LINK, (match) => ({ node: webLink(match[1], match[1]), length: match[0].length }));
      case "h":
      case "H": return this.bareLink();
      case "\n": return this.push(h("br", {}), 1);
      default: return false;
    }
  }

  /** Outputs the plain text before this position, then skips `length` characters. */
  skip(length) {
    if (this.at > this.plain) this.out.push(this.text.slice(this.plain, this.at));
    this.at += length;
    this.plain = this.at;
  }

  push(node, length) {
    this.skip(length);
    this.out.push(node);
    return true;
  }

  escape() {
    const next = this.text[this.at + 1];
    if (next === "\n") return this.push(h("br", {}), 2);
    return next !== undefined && ESCAPABLE.test(next) && this.push(next, 2);
  }

  code() {
    this.ticks ??= runs(this.text);
    let length = 1;
    while (this.text[this.at + length] === "`") length += 1;
    const starts = this.ticks.get(length) ?? [];
    while (starts.length && starts.at(-1) <= this.at) starts.pop();
    if (!starts.length) return this.push("`".repeat(length), length);
    const end = starts.at(-1);
    let code = this.text.slice(this.at + length, end).replaceAll("\n", " ");
    if (code.length > 2 && code.startsWith(" ") && code.endsWith(" ")) code = code.slice(1, -1);
    return this.push(h("code", { dir: "ltr" }, code), end + length - this.at);
  }

  emphasis(char) {
    let count = 1;
    while (this.text[this.at + count] === char) count += 1;
    if (char === "~" && count !== 2) return this.push(char.repeat(count), count);
    const before = this.at === 0 ? " " : lastOf(this.text, this.at);
    const after = String.fromCodePoint(this.text.codePointAt(this.at + count) ?? 32);
    const left = !SPACE.test(after) && (!PUNCTUATION.test(after) || BOUNDARY.test(before));
    const right = !SPACE.test(before) && (!PUNCTUATION.test(before) || BOUNDARY.test(after));
    const opens = char === "_" ? left && (!right || PUNCTUATION.test(before)) : left;
    const closes = char === "_" ? right && (!left || PUNCTUATION.test(after)) : right;
    this.skip(count);
    if (closes) count = this.close(char, count);
    if (!count) return true;
    if (opens) this.openers.push(this.out.length);
    this.out.push(opens ? { mark: char, count } : char.repeat(count));
    return true;
  }

  /** Wraps the content between an opening marker and this closing one; returns the number of unused markers. */
  close(char, count) {
    while (count > 0) {
      const floor = this.floor[char] ?? 0;
      let height = this.openers.length - 1;
      while (height >= floor && this.out[this.openers[height]].mark !== char) height -= 1;
      if (height < floor) {
        this.floor[char] = this.openers.length;
        break;
      }
      const index = this.openers[height];
      const opener = this.out[index];
      const used = char === "~" || (opener.count >= 2 && count >= 2) ? 2 : 1;
      const node = h(char === "~" ? "del" : used === 2 ? "strong" : "em", {});
      if (!this.wrap(node, index)) {
        this.cut(0); // every remaining opener encloses content that is already too deep
        break;
      }
      opener.count -= used;
      count -= used;
      this.cut(opener.count ? height + 1 : height);
      if (!opener.count) this.out[index] = this.out.pop();
    }
    return count;
  }

  /** Moves the output after an index into an element; returns false if that would nest too deep. */
  wrap(node, index) {
    let depth = 0;
    for (let at = index + 1; at < this.out.length; at += 1) depth = Math.max(depth, this.depths.get(this.out[at]) ?? 0);
    if (depth >= NESTING) return false;
    for (const item of this.out.splice(index + 1)) node.append(asNode(item));
    while (this.brackets.length && this.brackets.at(-1).index > index) this.brackets.pop();
    this.depths.set(node, depth + 1);
    this.out.push(node);
    return true;
  }

  /** Drops the openers from a height on, and what is recorded about them. */
  cut(height) {
    this.openers.length = Math.min(this.openers.length, height);
    for (const mark of Object.keys(this.floor)) this.floor[mark] = Math.min(this.floor[mark], height);
  }

  bracket(char) {
    const image = char === "!"; // shown as a link: images of other sites are never loaded
    if (image && this.text[this.at + 1] !== "[") return false;
    this.push({ text: image ? "![" : "[" }, image ? 2 : 1);
    this.brackets.push({ index: this.out.length - 1, openers: this.openers.length });
    return true;
  }

  closeBracket() {
    const opener = this.brackets.pop();
    const target = opener && this.target();
    const link = target && webLink(target.address);
    if (!link) return false;
    const source = this.text.slice(this.at, target.end);
    this.skip(source.length);
    this.brackets.length = 0; // no link within a link
    if (!this.wrap(link, opener.index)) {
      this.out.push(source);
      return true;
    }
    if (!link.hasChildNodes()) link.append(target.address);
    for (const inner of link.querySelectorAll("a")) unwrap(inner);
    this.out[opener.index] = this.out.pop();
    this.cut(opener.openers);
    return true;
  }

  /** The address in "](https://… "title")" at this position, and where it ends. */
  target() {
    const start = this.at + 2;
    if (this.text[this.at + 1] !== "(" || !WEB.test(this.text.slice(start, start + 10))) return null;
    this.parens ??= pairs(this.text);
    const end = this.parens.get(start - 1);
    if (end === undefined || end - start > ADDRESS) return null;
    const match = /^<?([^\s<>]+)>?(?:\s+(?:"[^"]*"|'[^']*'))?\s*$/.exec(this.text.slice(start, end));
    return match && { address: match[1], end: end + 1 };
  }

  bareLink() {
    const before = this.text[this.at - 1];
    if (before !== undefined && /\w/.test(before)) return false;
    return this.found(BARE_LINK, (match) => {
      const address = withoutTail(match[0]);
      return { node: webLink(address, address), length: address.length };
    });
  }

  found(pattern, create) {
    pattern.lastIndex = this.at;
    const match = pattern.exec(this.text);
    if (!match) return false;
    const { node, length } = create(match);
    return node !== null && this.push(node, length);
  }
}

function asNode(item) {
  if (typeof item === "string" || item instanceof Node) return item;
  return item.text ?? item.mark.repeat(item.count);
}

function lastOf(text, end) {
  const low = text.charCodeAt(end - 1);
  const paired = low >= 0xdc00 && low <= 0xdfff && end > 1;
  return text.slice(paired ? end - 2 : end - 1, end);
}

/** The start of every run of backticks, by run length, last first. */
function runs(text) {
  const found = new Map();
  for (const { 0: run, index } of text.matchAll(/`+/g)) {
    if (!found.has(run.length)) found.set(run.length, []);
    found.get(run.length).push(index);
  }
  for (const starts of found.values()) starts.reverse();
  return found;
}

/** The position of the matching ")" for each "(". */
function pairs(text) {
  const found = new Map();
  const open = [];
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === "(") open.push(at);
    else if (text[at] === ")" && open.length) found.set(open.pop(), at);
  }
  return found;
}

/** An address without trailing punctuation; a ")" stays if its "(" is inside. */
function withoutTail(address) {
  let end = address.length;
  let surplus = 0;
  for (const char of address) surplus += char === ")" ? 1 : char === "(" ? -1 : 0;
  for (; end > 0; end -= 1) {
    const last = address[end - 1];
    if (last === ")" && surplus > 0) surplus -= 1;
    else if (!".,;:!?*_~，。；：！？、）」』】".includes(last)) break;
  }
  return address.slice(0, end);
}
