// Data as text: what cannot be seen is made visible, and nothing is ever taken for markup.
import { h } from "./lib.js";

const NAMES = {
  0x7f: "DELETE", 0xad: "SOFT HYPHEN", 0x61c: "ARABIC LETTER MARK", 0x180e: "MONGOLIAN VOWEL SEPARATOR",
  0x200b: "ZERO WIDTH SPACE", 0x200e: "LEFT-TO-RIGHT MARK", 0x200f: "RIGHT-TO-LEFT MARK", 0x2028: "LINE SEPARATOR",
  0x2029: "PARAGRAPH SEPARATOR", 0x202a: "LEFT-TO-RIGHT EMBEDDING", 0x202b: "RIGHT-TO-LEFT EMBEDDING",
  0x202c: "POP DIRECTIONAL FORMATTING", 0x202d: "LEFT-TO-RIGHT OVERRIDE", 0x202e: "RIGHT-TO-LEFT OVERRIDE",
  0x2060: "WORD JOINER", 0x2066: "LEFT-TO-RIGHT ISOLATE", 0x2067: "RIGHT-TO-LEFT ISOLATE",
  0x2068: "FIRST STRONG ISOLATE", 0x2069: "POP DIRECTIONAL ISOLATE", 0xfeff: "BYTE ORDER MARK",
};
// C0 (but tab and newline), DEL, C1, bidirectional controls, zero-width signs, tag characters, lone surrogates.
const UNSEEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]|\p{Cs}/gu;

function mark(character, index) {
  const code = character.codePointAt(0);
  const name = `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
  const shown = code < 0x20 ? String.fromCharCode(0x2400 + code) : code === 0x7f ? "␡" : name;
  const title = NAMES[code] ? `${name} ${NAMES[code]}` : `${name}, a character that cannot be seen`;
  return h("span", { class: "unseen", title, key: index }, shown);
}

/** Return the children for `text`: strings, and a mark for each character that cannot be seen. */
export function visible(text) {
  const whole = String(text ?? "").replaceAll("\r\n", "\n");
  const parts = [];
  let from = 0;
  for (const found of whole.matchAll(UNSEEN)) {
    if (found.index > from) parts.push(whole.slice(from, found.index));
    parts.push(mark(found[0], found.index));
    from = found.index + found[0].length;
  }
  if (from < whole.length) parts.push(whole.slice(from));
  return parts;
}

/** Return `text` for a place that takes no marks (a title, an attribute): unseen characters as U+XXXX. */
export function plain(text) {
  return String(text ?? "").replace(UNSEEN, (c) => `⟨U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/** Shorten to `most` characters, with an ellipsis. */
export function shorten(text, most) {
  const whole = String(text ?? "");
  return whole.length > most ? `${whole.slice(0, most).replace(/[\ud800-\udbff]$/, "")}…` : whole;
}

const whole = new Intl.NumberFormat("en");
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** A number with separators: 12,345. */
export const number = (value) => (value === null || value === undefined ? "–" : whole.format(value));
/** A short number: 12.3K. */
export const short = (value) => (value === null || value === undefined ? "–" : compact.format(value));
/** A noun with its number: `plural(2, "event")` is "2 events". */
export const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;

/** A size: "1.2 kB". */
export function bytes(size) {
  if (size === null || size === undefined) return "–";
  if (size < 1000) return `${size} B`;
  return size < 1e6 ? `${(size / 1e3).toFixed(1)} kB` : `${(size / 1e6).toFixed(1)} MB`;
}

/** "ToolCallExecuted" → "Tool call executed". */
export function typeTitle(type) {
  const words = String(type ?? "").replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const time = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

/** A moment in local time: `{day, time, full}`; null for none. */
export function moment(at) {
  const date = at ? new Date(at) : null;
  if (!date || Number.isNaN(date.getTime())) return null;
  return { day: day.format(date), time: time.format(date), full: `${day.format(date)}, ${time.format(date)}`, date };
}

const STEPS = [[60, "second"], [3600, "minute"], [86400, "hour"], [86400 * 30, "day"], [86400 * 365, "month"]];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

/** "3 hours ago". */
export function ago(at) {
  const found = moment(at);
  if (!found) return "";
  const seconds = (found.date.getTime() - Date.now()) / 1000;
  const size = Math.abs(seconds);
  let unit = 1;
  for (const [limit, name] of STEPS) {
    if (size < limit) return relative.format(Math.round(seconds / unit), name);
    unit = limit;
  }
  return relative.format(Math.round(seconds / (86400 * 365)), "year");
}

/** Seconds as "1 min 5 s". */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.round((seconds % 3600) / 60)} min`;
}
