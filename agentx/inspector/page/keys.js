// Keyboard: single letters where no field is focused. They can be switched off (WCAG 2.1.4).
import { useEffect } from "./lib.js";
import { go, link, readRoute } from "./router.js";
import { belongs, VIEWS } from "./views/index.js";

const OFF = "agentx.inspector.keys-off";

/** True if single-key shortcuts are on. */
export function keysOn() {
  try {
    return localStorage.getItem(OFF) === null;
  } catch {
    return true;
  }
}

/** Switch single-key shortcuts on or off, for good. */
export function setKeysOn(on) {
  try {
    if (on) localStorage.removeItem(OFF);
    else localStorage.setItem(OFF, "1");
  } catch {
    // Without storage they stay on.
  }
}

/** What the keys do, for the dialog. */
export const KEYS = [
  ["j / k", "next / previous row of a list"],
  ["Enter", "open the row"],
  ["/", "search, or the filter of this view"],
  ["g, then a letter", Object.values(VIEWS).filter((view) => view.key).map((view) => `${view.key} ${view.nav ?? view.title}`).join(" · ")],
  ["a, r", "of candidates: accept or reject the marked one"],
  ["?", "this list"],
  ["Esc", "close; leave a field"],
];

const EDITABLE = "input:not([type=range]):not([type=checkbox]), textarea, select, [contenteditable]";

function step(direction) {
  const rows = [...document.querySelectorAll("#main [data-row]")].filter((row) => row.offsetParent !== null);
  if (!rows.length) return;
  const at = rows.indexOf(document.activeElement);
  const next = at < 0 ? (direction > 0 ? 0 : rows.length - 1) : Math.max(0, Math.min(rows.length - 1, at + direction));
  rows[next].focus();
  rows[next].scrollIntoView({ block: "nearest" });
}

function find() {
  const field = document.querySelector("#main [data-search]");
  if (field) {
    field.focus();
    field.select?.();
  } else {
    go(link(readRoute().workspace, "search"));
  }
}

/** Listen to the keys for the whole page; `onHelp` opens the list. */
export function useKeys(onHelp) {
  useEffect(() => {
    let after = -Infinity;
    const pressed = (event) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      const inField = event.target.closest?.(EDITABLE);
      if (event.key === "Escape" && inField) {
        inField.blur();
        return;
      }
      if (inField || document.querySelector("dialog[open]") || !keysOn()) return;
      const following = event.timeStamp - after < 1500;
      after = -Infinity;
      if (following) {
        const found = Object.entries(VIEWS).find(([, view]) => view.key === event.key && belongs(view, readRoute().workspace));
        if (found) go(link(readRoute().workspace, found[0]));
        else return;
      } else if (event.key === "g") after = event.timeStamp;
      else if (event.key === "j") step(1);
      else if (event.key === "k") step(-1);
      else if (event.key === "/") find();
      else if (event.key === "?") onHelp();
      else return;
      event.preventDefault();
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, []);
}
