/** Avatars: agents are square tiles with two letters, people are round with one initial. */

import { h, icon } from "./dom.js";
import { quotedName } from "./printable.js";

const HUES = 12;

/** The avatar of a name; `kind` is agent, human or system. Screen readers skip it, so show the name as text beside it. */
export function avatar(name, kind = "agent") {
  if (kind === "system") return h("span", { class: "avatar avatar-system", "aria-hidden": "true" }, icon("system"));
  const person = kind === "human" || kind === "person";
  const classes = person ? "avatar avatar-person" : "avatar avatar-agent";
  return h("span", { class: classes, dataset: { hue: String(hue(name)) }, "aria-hidden": "true", title: name }, person ? letters(name, 1) : letters(name, 2));
}

/** An avatar with the name beside it. */
export function nameplate(name, kind = "agent") {
  return h("span", { class: "nameplate" }, avatar(name, kind), h("bdi", { class: "nameplate-name" }, quotedName(name)));
}

/** Names that differ only in case are the same agent, so they get the same hue. */
function hue(name) {
  let sum = 0;
  for (const character of name.toLowerCase()) sum = (sum * 31 + character.codePointAt(0)) % 9973;
  return sum % HUES;
}

/** One or two letters: the initials of the first and last word, or a letter and a digit ("agent-7": A7). */
function letters(name, count) {
  const words = name.split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  const first = [...(words[0] ?? name)];
  if (count === 1) return (first[0] ?? "?").toUpperCase();
  const last = words.length > 1 ? [...words.at(-1)] : [];
  const second = /^\p{N}+$/u.test(last.join("")) ? last.at(-1) : last[0] ?? first[1] ?? "";
  return ((first[0] ?? "?") + second).toUpperCase();
}
