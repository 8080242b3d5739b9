/** A Markdown subset for task bodies and comments, as DOM nodes: blocks here, inline markup in markdown-inline.js. */

import { h } from "./dom.js";
import { inline, unwrap } from "./markdown-inline.js";

const DEPTH = 12; // deeper quotes and lists are shown as text
const COLUMNS = 100; // of a table
const TAB = "    ";
// Each of these runs on every line, so each must match in one pass, whatever the line contains.
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+([^]*))?$/;
const UNDERLINE = /^ {0,3}(?:=+|-+)[ \t]*$/;
const RULE = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( *)(?:([-*+])|(\d{1,9})[.)])(?: +|$)/;
const TASK_BOX = /^\[([ xX])\] +/;
const TABLE_RULE = /^\|?\s*:?-+:?(?:\s*\|\s*:?-+:?)*\s*\|?$/;

/**
 * Markdown as nodes. HTML stays text, links are http(s) only, and the time is linear in the length of the text.
 * `level` is the level of the page's heading above it; headings never skip a level.
 */
export function markdown(text, { level = 3 } = {}) {
  const lines = text.replaceAll("\r\n", "\n").replaceAll("\r", "\n").split("\n");
  const fragment = document.createDocumentFragment();
  for (const node of blocks(lines.map(untabbed), 0, { base: level, level })) fragment.append(node);
  return fragment;
}

/** Expands the tabs that indent a line; other tabs stay. */
function untabbed(line) {
  const start = line.search(/[^ \t]/);
  return start > 0 ? line.slice(0, start).replaceAll("\t", TAB) + line.slice(start) : line;
}

function blocks(lines, depth, headings) {
  const nodes = [];
  let paragraph = [];
  const endParagraph = () => {
    if (paragraph.length) nodes.push(autoDirected("p", {}, inline(paragraph.join("\n"))));
    paragraph = [];
  };
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    if (!line.trim()) {
      endParagraph();
      at += 1;
      continue;
    }
    if (paragraph.length && UNDERLINE.test(line)) {
      nodes.push(heading(line.trim()[0] === "=" ? 1 : 2, paragraph.join("\n"), headings));
      paragraph = [];
      at += 1;
      continue;
    }
    const block = startOf(lines, at, depth, paragraph.length > 0, headings);
    if (block) {
      endParagraph();
      nodes.push(block.node);
      at = block.next;
    } else {
      paragraph.push(line.trim());
      at += 1;
    }
  }
  endParagraph();
  return nodes;
}

/** The block that starts at a line, and the line after the block; null if the line belongs to a paragraph. */
function startOf(lines, at, depth, inParagraph, headings) {
  const line = lines[at];
  if (opensFence(line)) return fenced(lines, at);
  const title = HEADING.exec(line);
  if (title) return { node: heading(title[1].length, withoutClosing(title[2] ?? ""), headings), next: at + 1 };
  if (RULE.test(line)) return { node: h("hr", {}), next: at + 1 };
  if (startsTable(lines, at)) return table(lines, at);
  if (depth >= DEPTH) return null;
  if (QUOTE.test(line)) return quote(lines, at, depth, headings);
  const item = ITEM.exec(line);
  // Only a list that starts at 1 and has text may interrupt a paragraph: "in\n2026. That year" is not a list.
  if (item && !(inParagraph && (item[0].length === line.length || (item[3] && item[3] !== "1")))) {
    return list(lines, at, item, depth, headings);
  }
  return null;
}

function heading(wanted, text, headings) {
  headings.level = Math.min(headings.base + wanted, headings.level + 1, 6);
  return autoDirected(`h${headings.level}`, { dataset: { level: String(wanted) } }, inline(text.trim()));
}

/** An element with automatic text direction. `dir` is set last: with it set, the browser checks all children for each one added. */
function autoDirected(tag, props, children) {
  const element = h(tag, props, children);
  element.dir = "auto";
  return element;
}

/** The text of a heading without its closing "#" characters. */
function withoutClosing(text) {
  const trimmed = text.trimEnd();
  let end = trimmed.length;
  while (end > 0 && trimmed[end - 1] === "#") end -= 1;
  return end === 0 || trimmed[end - 1] === " " ? trimmed.slice(0, end) : trimmed;
}

/** Whether a line opens a fence; "``` a `code` span" does not. */
function opensFence(line) {
  const [opening, marks] = FENCE.exec(line) ?? [];
  return marks !== undefined && !(marks[0] === "`" && line.includes("`", opening.length));
}

function fenced(lines, at) {
  const [opening, marks] = FENCE.exec(lines[at]);
  const indent = opening.length - marks.length;
  const closes = (line) => {
    const mark = line.trim();
    return mark.length >= marks.length && line.search(/\S/) < 4 && mark === marks[0].repeat(mark.length);
  };
  let end = at + 1;
  while (end < lines.length && !closes(lines[end])) end += 1;
  const code = lines.slice(at + 1, end).map((line) => line.slice(Math.min(indent, Math.max(line.search(/\S/), 0))));
  const language = lines[at].slice(opening.length).trim().split(/\s/)[0];
  // Focusable, so that long lines can be scrolled by keyboard.
  const node = h("pre", { tabIndex: 0, role: "region", "aria-label": language ? `Code: ${language}` : "Code" },
    h("code", { dir: "ltr" }, code.join("\n")));
  return { node, next: end + 1 };
}

function quote(lines, at, depth, headings) {
  const inner = [];
  let next = at;
  while (next < lines.length && QUOTE.test(lines[next])) {
    inner.push(lines[next].replace(QUOTE, ""));
    next += 1;
  }
  return { node: h("blockquote", {}, blocks(inner, depth + 1, headings)), next };
}

function list(lines, at, first, depth, headings) {
  const ordered = first[3] !== undefined;
  const indent = first[1].length;
  const items = [];
  let loose = false;
  let next = at;
  while (next < lines.length) {
    const item = ITEM.exec(lines[next]);
    if (!item || (item[3] !== undefined) !== ordered || item[1].length > indent + 3 || RULE.test(lines[next])) break;
    const inner = [lines[next].slice(item[0].length)];
    const inside = item[1].length + 2; // more lenient than CommonMark, which requires the exact width
    next += 1;
    while (next < lines.length) {
      const line = lines[next];
      const start = line.search(/\S/);
      if (start < 0) {
        const following = lines[next + 1] ?? "";
        const stays = following.search(/\S/) >= inside;
        if (!stays && !sibling(following, ordered, indent)) break;
        loose = true;
        if (!stays) {
          next += 1;
          break;
        }
      } else if (start < inside && (ITEM.test(line) || inner.at(-1) === "" || interrupts(line))) {
        break;
      }
      inner.push(start < 0 ? "" : line.slice(Math.min(start, item[0].length)));
      next += 1;
    }
    items.push(listItem(inner, depth, headings));
  }
  if (!loose) for (const item of items) tighten(item);
  const node = ordered ? h("ol", { start: Number(first[3]) }, items) : h("ul", {}, items);
  return { node, next };
}

function sibling(line, ordered, indent) {
  const item = ITEM.exec(line);
  return item !== null && (item[3] !== undefined) === ordered && item[1].length < indent + 2;
}

function interrupts(line) {
  return HEADING.test(line) || opensFence(line) || QUOTE.test(line) || RULE.test(line);
}

function listItem(lines, depth, headings) {
  const box = TASK_BOX.exec(lines[0]);
  if (!box) return autoDirected("li", {}, blocks(lines, depth + 1, headings));
  const ticked = box[1] !== " ";
  const mark = h("span", { class: "task-box", role: "img", "aria-label": ticked ? "Done" : "To do", dataset: { ticked: String(ticked) } });
  lines[0] = lines[0].slice(box[0].length);
  const inner = blocks(lines, depth + 1, headings);
  if (inner[0]?.tagName === "P") inner[0].prepend(mark);
  else inner.unshift(mark);
  return autoDirected("li", { class: "task-item" }, inner);
}

/** Removes the paragraphs from the items of a list without blank lines. */
function tighten(item) {
  for (const child of [...item.children]) if (child.tagName === "P") unwrap(child);
}

function startsTable(lines, at) {
  const rule = (lines[at + 1] ?? "").trim();
  // Browsers take seconds to lay out thousands of columns.
  return lines[at].includes("|") && TABLE_RULE.test(rule) && rule.split("|", COLUMNS + 3).length <= COLUMNS + 2;
}

function table(lines, at) {
  const aligns = cells(lines[at + 1]).map((mark) => {
    if (!mark.endsWith(":")) return "align-start";
    return mark.startsWith(":") ? "align-center" : "align-end";
  });
  // Do not pad short rows: a wide header over many short rows would create too many cells.
  const row = (line, tag) => h("tr", {}, cells(line).slice(0, aligns.length).map((cell, column) =>
    autoDirected(tag, { class: aligns[column] }, inline(cell))));
  const body = [];
  let next = at + 2;
  while (next < lines.length && lines[next].includes("|")) {
    body.push(row(lines[next], "td"));
    next += 1;
  }
  const node = h("div", { class: "table-scroll", tabIndex: 0, role: "region", "aria-label": "Table" },
    h("table", {}, h("thead", {}, row(lines[at], "th")), body.length > 0 && h("tbody", {}, body)));
  return { node, next };
}

/** The cells of a table row; "\|" is a literal bar. */
function cells(line) {
  const found = [];
  let cell = "";
  const trimmed = line.trim();
  for (let at = trimmed.startsWith("|") ? 1 : 0; at < trimmed.length; at += 1) {
    if (trimmed[at] === "\\" && trimmed[at + 1] === "|") {
      cell += "|";
      at += 1;
    } else if (trimmed[at] === "|") {
      found.push(cell.trim());
      cell = "";
    } else {
      cell += trimmed[at];
    }
  }
  if (cell.trim() || !trimmed.endsWith("|")) found.push(cell.trim());
  return found;
}
