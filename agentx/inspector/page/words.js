// The words of the glossary for kinds, statuses and outcomes, and the tone in which each is shown.

/** Kinds of memory items, in the order in which a context shows them. */
export const KINDS = [
  "north_star", "constraint", "rule", "rejection", "hot_issue", "decision", "task", "situation", "knowledge", "episode", "flow",
  "capability",
];

/** Statuses of memory items, in the order of their life. */
export const STATUSES = ["candidate", "active", "dormant", "closed", "retired"];

/** A name of the record in words: "hot_issue" → "hot issue". */
export const words = (name) => String(name ?? "").replaceAll("_", " ");

/** The kind as a noun that begins a line. */
export function kindTitle(kind) {
  const text = words(kind);
  return text.charAt(0).toUpperCase() + text.slice(1);
}

const STATUS = { candidate: "warn", active: "good", dormant: "", closed: "", retired: "" };
/** The tone of a status. */
export const statusTone = (status) => STATUS[status] ?? "";

/** The tone of "enforced" and "shown only". */
export const checkedTone = (checked) => (checked === "enforced" ? "good" : "");

const OUTCOME = {
  COMPLETED: "good", SUCCEEDED: "good", passed: "good", proved: "good", proven: "good",
  FAILED: "bad", failed: "bad", broken: "bad", DENIED: "bad", critical: "bad",
  WAITING: "warn", DECIDED: "warn", LIMIT_REACHED: "warn", INTERRUPTED: "warn", PARTIAL: "warn", REOPENED: "warn", high: "warn", unproven: "warn",
  RUNNING: "accent", running: "accent",
};
/** The tone of an outcome of a run, a call, a flow or a problem. */
export const outcomeTone = (outcome) => OUTCOME[outcome] ?? "";

/** An outcome in words: "LIMIT_REACHED" → "limit reached". */
export const outcomeWords = (outcome) => words(String(outcome ?? "")).toLowerCase();
