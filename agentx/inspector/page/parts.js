// Parts that every view is made of.
import { REOPEN } from "./api.js";
import { html, useCallback, useEffect, useRef, useState } from "./lib.js";
import { link } from "./router.js";
import { ago, moment, plain, shorten, typeTitle, visible } from "./text.js";

/** Text of data, cut to `most` characters; `block` keeps its lines. */
export function Text({ text, most = 20_000, block = false, cut = false }) {
  const [whole, setWhole] = useState(false);
  const full = String(text ?? "");
  const shown = whole ? full : shorten(full, most);
  if (!block) return html`<span class="text">${visible(shown)}</span>`;
  return html`<div class="text-block">
    <pre class="text" tabindex="0">${visible(shown)}</pre>
    ${!whole && full.length > most && html`<button class="quiet" onClick=${() => setWhole(true)}>Show all</button>`}
    ${cut && html`<p class="note">The text is longer; this is its beginning.</p>`}
  </div>`;
}

/** A moment: local time, with the whole in its title; `relative` says "3 hours ago". */
export function When({ at, relative = false, date = false }) {
  const found = moment(at);
  if (!found) return html`<span class="when">–</span>`;
  const shown = relative ? ago(at) : date ? found.full : found.time;
  return html`<time class="when" datetime=${at} title=${found.full}>${shown}</time>`;
}

/** A short label. `tone`: "", "good", "bad", "warn", "accent". */
export function Badge({ tone = "", title, children }) {
  return html`<span class=${`badge ${tone}`} title=${title}>${children}</span>`;
}

/** Who did it: the user, an agent, or the engine. */
export function Actor({ actor }) {
  if (!actor) return null;
  const [kind, ...name] = String(actor).split(":");
  return html`<span class=${`actor ${kind === "user" ? "user" : ""}`}><${Text} text=${name.join(":") || kind} most=${60} /></span>`;
}

/** A link to an event: its number, and its text if there is one. */
export function EventLink({ workspace, seq, text, row = false }) {
  return html`<a class="event-link" href=${link(workspace, "event", seq)} data-row=${row || undefined}>
    <span class="seq">${seq}</span>${text !== undefined && html` <${Text} text=${text} most=${400} />`}
  </a>`;
}

/** A link to a memory item. */
export function ItemLink({ workspace, id, text, row = false }) {
  return html`<a class="item-link" href=${link(workspace, "memory", id)} data-row=${row || undefined}>
    ${text === undefined ? html`<code><${Text} text=${id} most=${80} /></code>` : html`<${Text} text=${text} most=${400} />`}
  </a>`;
}

/** A link to an artifact as it was at a moment (now without one). */
export function FileLink({ workspace, path, at, row = false }) {
  return html`<a class="file-link" data-row=${row || undefined} href=${link(workspace, "file", path, { at })}><code><${Text} text=${path} most=${200} /></code></a>`;
}

/** Nothing to show: what would be here, and how it comes to be. */
export function Empty({ title, children }) {
  return html`<div class="empty"><p class="empty-title">${title}</p>${children && html`<div class="empty-more">${children}</div>`}</div>`;
}

/** What went wrong, and what to do. */
export function ErrorBox({ error, retry }) {
  if (!error) return null;
  const lost = error.status === 0 || error.status === 401;
  return html`<div class="error" role="alert">
    <p><${Text} text=${error.message} most=${1000} /></p>
    ${lost && html`<p>Run <code>${REOPEN}</code> in a terminal: it starts the server and opens this page again.
      ${error.status === 401 && " The address that opened this page is no longer valid."}</p>`}
    ${retry && html`<button onClick=${retry}>Try again</button>`}
  </div>`;
}

/** Grey lines while data are under way. */
export function Skeleton({ lines = 6 }) {
  return html`<div class="skeleton" role="status" aria-label="Loading">
    ${Array.from({ length: lines }, (_, index) => html`<div key=${index} class=${`bone w${index % 4}`}></div>`)}
  </div>`;
}

/** Skeleton, error or content of a `useGet`: `children` is a function of the data. */
export function Loaded({ from, lines, children }) {
  if (from.error) return html`<${ErrorBox} error=${from.error} retry=${from.reload} />`;
  if (from.data === null) return html`<${Skeleton} lines=${lines} />`;
  return children(from.data);
}

/** A titled block of a view. */
export function Card({ title, aside, children, tone = "", id }) {
  return html`<section class=${`card ${tone}`} aria-label=${typeof title === "string" ? title : undefined} id=${id}>
    ${title && html`<header class="card-head"><h2>${title}</h2>${aside && html`<div class="card-aside">${aside}</div>`}</header>`}
    ${children}
  </section>`;
}

/** Pairs of name and value; pairs without a value are left out. */
export function Facts({ pairs }) {
  const shown = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false);
  return html`<dl class="facts">${shown.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** Pages of a list by offset: `offset`, `limit`, `total`, `onOffset(next)`. */
export function Pager({ offset, limit, total, onOffset }) {
  if (total <= limit) return null;
  const last = Math.min(offset + limit, total);
  return html`<nav class="pager" aria-label="Pages">
    <button disabled=${offset === 0} onClick=${() => onOffset(Math.max(0, offset - limit))}>Previous</button>
    <span>${offset + 1}–${last} of ${total}</span>
    <button disabled=${last >= total} onClick=${() => onOffset(offset + limit)}>Next</button>
  </nav>`;
}

/** A field with its label. */
export function Field({ label, children, wide = false }) {
  return html`<label class=${`field ${wide ? "wide" : ""}`}><span>${label}</span>${children}</label>`;
}

/** A choice among few: `options` are [value, title] pairs. */
export function Choice({ label, value, options, onChange }) {
  return html`<${Field} label=${label}>
    <select value=${value} onChange=${(event) => onChange(event.currentTarget.value)}>
      ${options.map(([key, title]) => html`<option key=${key} value=${key} selected=${key === value}>${plain(shorten(title, 80))}</option>`)}
    </select>
  <//>`;
}

/** A dialog; Escape and a click beside it close it. */
export function Dialog({ title, onClose, children, wide = false }) {
  const box = useRef(null);
  useEffect(() => {
    const dialog = box.current;
    const before = document.activeElement;
    dialog.showModal();
    return () => {
      if (dialog.open) dialog.close();
      before?.focus?.();
    };
  }, []);
  return html`<dialog ref=${box} class=${wide ? "wide" : ""} aria-label=${title} onClose=${onClose}
    onClick=${(event) => event.target === box.current && onClose()}>
    <div class="dialog">
      <header><h2>${title}</h2><button class="quiet" aria-label="Close" onClick=${onClose}>✕</button></header>
      ${children}
    </div>
  </dialog>`;
}

let announce = () => {};

/** Say in a corner what was done: `toast("Pinned.")`, `toast("It changed since.", "bad")`. */
export function toast(text, tone = "good") {
  announce({ text, tone, key: Math.random() });
}

/** The corner where toasts appear; the app shows it once. */
export function Toasts() {
  const [shown, setShown] = useState([]);
  announce = useCallback((one) => {
    setShown((was) => [...was.slice(-2), one]);
    setTimeout(() => setShown((was) => was.filter((other) => other !== one)), 6000);
  }, []);
  return html`<div class="toasts" role="status" aria-live="polite">
    ${shown.map((one) => html`<div key=${one.key} class=${`toast ${one.tone}`}><${Text} text=${one.text} most=${400} /></div>`)}
  </div>`;
}

/** A unified diff; files are named above by the caller. */
export function Diff({ text, cut = false }) {
  const lines = String(text ?? "").split("\n");
  if (lines.at(-1) === "") lines.pop();
  const tone = (line) => {
    if (line.startsWith("+++") || line.startsWith("---") || line.startsWith("diff ") || line.startsWith("index ")) return "meta";
    return { "+": "add", "-": "del", "@": "hunk", "\\": "meta" }[line[0]] ?? "";
  };
  return html`<div class="diff" role="region" aria-label="Changes" tabindex="0">
    <pre>${lines.slice(0, 2000).map((line, index) => html`<span key=${index} class=${`line ${tone(line)}`}>${visible(shorten(line, 2000))}${"\n"}</span>`)}</pre>
    ${(cut || lines.length > 2000) && html`<p class="note">The diff is longer; this is its beginning.</p>`}
  </div>`;
}

/** Parts of a whole as one bar; `parts`: [{name, value, tint}]. The list beside it is its text form. */
export function StackedBar({ parts, total, label }) {
  const sum = total || parts.reduce((all, part) => all + part.value, 0) || 1;
  let from = 0;
  return html`<svg class="stacked" viewBox="0 0 1000 12" preserveAspectRatio="none" role="img" aria-label=${label}>
    <rect class="rest" x="0" y="0" width="1000" height="12" />
    ${parts.map((part, index) => {
      const x = (from / sum) * 1000;
      from += part.value;
      return html`<rect key=${part.name} class=${`p${(part.tint ?? index) % 8}`} x=${x} y="0" width=${Math.max(0, (part.value / sum) * 1000 - 2)} height="12" />`;
    })}
  </svg>`;
}

/** A type of event as words. */
export function TypeName({ type }) {
  return html`<span class="type" title=${plain(type)}><${Text} text=${typeTitle(type)} most=${60} /></span>`;
}

/** The title of a view, which takes the focus when the view opens; `aside` stands beside it. */
export function ViewHead({ title, children, aside }) {
  return html`<header class="view-head">
    <div><h1 tabindex="-1">${title}</h1>${children && html`<p class="lead">${children}</p>`}</div>
    ${aside && html`<div class="view-aside">${aside}</div>`}
  </header>`;
}
