/**
 * Escapes hidden characters: the rule of `printable.py`, word for word. Every element of the page is made in dom.js,
 * which passes all text through here.
 */

const JOINING = "\\u0600-\\u061b\\u061d-\\u109f\\u1780-\\u17b3\\u17b6-\\u180a\\u1810-\\u18af\\u1900-\\u1cff\\ua800-\\uabff\\ufb50-\\ufdff\\ufe70-\\ufefc\\u{10a00}-\\u{11fff}";
const STACKING = "\\u0300-\\u034e\\u0350-\\u036f\\u0483-\\u0489\\u1ab0-\\u1aff\\u1dc0-\\u1dff\\u20d0-\\u20ff\\ufe20-\\ufe2f";
const MARKS = 8; // combining marks in a row that are shown

const HIDDEN = new RegExp(`[\\0-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u2028\\u2029\\ufff9-\\ufffb\\p{Cs}\\p{Default_Ignorable_Code_Point}${STACKING}]+`, "gu");
const MARK = new RegExp(`[${STACKING}]`, "u");
/** Hidden characters at a place where they show something: joiners, emoji, three flags. */
const SHOWS = new RegExp(
  `(?<=[${JOINING}])[\\u200c\\u200d]`
  + "|(?<=[\\p{Extended_Pictographic}\\u{1f3fb}-\\u{1f3ff}\\ufe0f])\\u200d(?=\\p{Extended_Pictographic})"
  + "|(?<=\\p{Extended_Pictographic})[\\ufe0e\\ufe0f]"
  + "|(?<=[#*0-9])\\ufe0f(?=\\u20e3)"
  + "|(?<=\\u{1f3f4})\\u{e0067}\\u{e0062}(?:\\u{e0065}\\u{e006e}\\u{e0067}|\\u{e0073}\\u{e0063}\\u{e0074}|\\u{e0077}\\u{e006c}\\u{e0073})\\u{e007f}",
  "uy");
const SIMPLE_NAME = new RegExp(`^[\\p{L}\\p{N}_${JOINING}](?:[\\p{L}\\p{N}_${JOINING}${STACKING}.@+/#~-]*[\\p{L}\\p{N}_${JOINING}${STACKING}])?$`, "u");

/** Text with its line breaks and tabs; every other hidden character is escaped. */
export function visible(text) {
  return text.replace(HIDDEN, (run, start) => escapeRun(text, start, start + run.length));
}

/** A name as it stands in a sentence: in quotation marks if it is more than one plain word. */
export function quotedName(name) {
  return SIMPLE_NAME.test(name) ? name : `“${name}”`;
}

function escapeRun(text, start, end) {
  let shown = "";
  let marks = start === 0 || text[start - 1] === "\n" || text[start - 1] === '"' ? MARKS : 0;
  for (let place = start; place < end;) {
    const char = String.fromCodePoint(text.codePointAt(place));
    SHOWS.lastIndex = place;
    const kept = MARK.test(char) ? null : SHOWS.exec(text)?.[0];
    if (kept) {
      shown += kept;
      place += kept.length;
      marks = 0;
      continue;
    }
    shown += MARK.test(char) && marks < MARKS ? char : escaped(char);
    marks = MARK.test(char) ? marks + 1 : MARKS;
    place += char.length;
  }
  return shown;
}

function escaped(char) {
  return [...Array(char.length).keys()].map((at) => `\\u${char.charCodeAt(at).toString(16).padStart(4, "0")}`).join("");
}
