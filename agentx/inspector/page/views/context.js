// What an agent would see now or at any earlier moment: a slider over the history, the sections with their tokens, for
// each item why it is there and the sentence it came from, what was left out, and two moments side by side.
import { useGet, useStream } from "../api.js";
import { html, useEffect, useRef, useState } from "../lib.js";
import { Badge, Card, Choice, Empty, EventLink, Field, FileLink, ItemLink, Loaded, Skeleton, StackedBar, Text, ViewHead, When } from "../parts.js";
import { link, setQuery } from "../router.js";
import { number, plain, plural, shorten } from "../text.js";

const TIERS = [["", "As usual"], ["0", "0: the least"], ["1", "1: usual"], ["2", "2: with the day"], ["3", "3: with the log"]];
const MARKS = {
  __proto__: null,
  message: "Message", run: "Run", checkpoint: "Checkpoint", directive: "Directive", undo: "Undo", restore: "Restore",
  fork: "Fork", purge: "Purge", reset: "Reset",
};
const markTitle = (mark) => `${MARKS[mark.what] ?? mark.what} · ${mark.seq} · ${shorten(mark.text, 70)}`;

/** Wait until a value has rested for `ms`: the slider passes many moments on its way. */
function useRested(value, ms) {
  const [rested, setRested] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setRested(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return rested;
}

/** A slider over the history, with a mark for each moment that stands out. */
function Moments({ workspace, moments, value, onChange, label, other, shownAt }) {
  const { first, last, marks } = moments;
  const low = Math.max(1, first.seq);
  const span = Math.max(1, last.seq - low);
  const at = (seq) => 8 + ((seq - low) / span) * 984;
  const near = [...marks].reverse().find((mark) => mark.seq <= value);
  const before = [...marks].reverse().find((mark) => mark.seq < value);
  const after = marks.find((mark) => mark.seq > value);
  return html`<div class="moments">
    <div class="moments-line">
      <button class="quiet" disabled=${!before} title="Previous mark" aria-label="Previous mark" onClick=${() => onChange(before.seq)}>◂</button>
      <div class="moments-slider">
        <input type="range" min=${low} max=${Math.max(low, last.seq)} step="1" value=${value} aria-label=${label}
          aria-valuetext=${`Event ${value}${near ? `, after ${plain(markTitle(near))}` : ""}`}
          onInput=${(event) => onChange(Number(event.currentTarget.value))} />
        <svg class="marks" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">
          ${marks.map((mark) => html`<line key=${mark.seq} class=${`mark ${mark.what === "message" ? "message" : mark.what === "run" ? "run" : "rare"}`} x1=${at(mark.seq)} x2=${at(mark.seq)} y1="0" y2=${mark.what === "run" ? 5 : 10} />`)}
          ${other !== undefined && html`<line class="mark other" x1=${at(other)} x2=${at(other)} y1="0" y2="10" />`}
        </svg>
      </div>
      <button class="quiet" disabled=${!after} title="Next mark" aria-label="Next mark" onClick=${() => onChange(after.seq)}>▸</button>
      <button disabled=${value >= last.seq} onClick=${() => onChange(last.seq)}>Now</button>
    </div>
    <div class="moments-below">
      <span>${label}: after event <${EventLink} workspace=${workspace} seq=${value} /> of ${number(last.seq)}${shownAt && html` · <${When} at=${shownAt} date />`}</span>
      <select aria-label=${`${label}: choose a mark`} onChange=${(event) => event.currentTarget.value && onChange(Number(event.currentTarget.value))}>
        <option value="" selected>Go to a mark …</option>
        ${marks.map((mark) => html`<option key=${mark.seq} value=${mark.seq}>${plain(markTitle(mark))}</option>`)}
      </select>
    </div>
  </div>`;
}

/** Where an item's words come from. */
function Evidence({ workspace, evidence }) {
  return html`<ul class="evidence">${evidence.map((one, index) => html`<li key=${index}>
    <blockquote><${Text} text=${one.quote ?? one.sentence} most=${600} /></blockquote>
    <p class="note">${one.actor ?? "said"} in event <${EventLink} workspace=${workspace} seq=${one.seq} /></p></li>`)}</ul>`;
}

function Source({ workspace, source, at }) {
  if (!source) return null;
  const seq = /^event[ -](\d+)$/.exec(source)?.[1];
  if (seq) return html`<${EventLink} workspace=${workspace} seq=${Number(seq)} />`;
  const file = /^(.+?):(\d+)(?:-(\d+))?$/.exec(source);
  if (file) return html`<${FileLink} workspace=${workspace} path=${file[1]} at=${at} /> <span class="muted">lines ${file[2]}${file[3] && `–${file[3]}`}</span>`;
  return html`<${Text} text=${source} most=${200} />`;
}

function Item({ workspace, item, at }) {
  // The text begins with the id, as an agent reads it; here the id is a link below.
  const lead = `- [${item.memory || item.id}] `;
  const text = item.text.startsWith(lead) ? item.text.slice(lead.length) : item.text.replace(/^- /, "");
  return html`<li class="context-item">
    <div class="context-main"><div class="context-text"><${Text} text=${text} most=${700} /></div>
      <span class="num" title=${plural(item.tokens, "token")}>${number(item.tokens)}<span class="hidden-text"> tokens</span></span></div>
    <div class="note context-facts">
      <span class="why"><${Text} text=${item.why} most=${300} /></span>
      ${item.memory ? html`<${ItemLink} workspace=${workspace} id=${item.memory} row />` : html`<${Source} workspace=${workspace} source=${item.source} at=${at} />`}
      ${item.checked && html`<${Badge} tone=${item.checked === "enforced" ? "good" : ""} title=${item.checked === "enforced" ? "Code checks it on every write" : "It is shown; no code checks it"}>${item.checked}<//>`}
      ${item.evidence?.length > 0 && html`<details class="whence"><summary>The words it came from</summary><${Evidence} workspace=${workspace} evidence=${item.evidence} /></details>`}
    </div>
  </li>`;
}

function Sections({ workspace, data, tint }) {
  if (!data.sections.length) return html`<${Empty} title="An agent would have seen nothing yet.">Say what the work is about: <code>agentx say "…"</code>.<//>`;
  return data.sections.map((section, index) => html`<section class="card context-section" key=${section.name} id=${`section-${index}`} aria-label=${plain(section.title)}>
    <header class="card-head"><h2><${Swatch} index=${tint[section.name]} /><${Text} text=${section.title} most=${120} /></h2>
      <span class="card-aside">${plural(section.tokens, "token")}${section.items.length > 1 && ` · ${section.items.length} items`}</span></header>
    <ul class="rows"><${Some} of=${section.items} item=${(item, place) => html`<${Item} key=${`${item.id}/${place}`} workspace=${workspace} item=${item} at=${data.at} />`} /></ul>
  </section>`);
}

/** The first items of a long list, and a button for the rest. */
function Some({ of, item, most = 40 }) {
  const [shown, setShown] = useState(most);
  return html`${of.slice(0, shown).map(item)}
    ${of.length > shown && html`<li key="more" class="more"><button onClick=${() => setShown(shown + 200)}>Show ${number(Math.min(200, of.length - shown))} more</button></li>`}`;
}

function Swatch({ index }) {
  return html`<svg class="swatch" viewBox="0 0 10 10" aria-hidden="true"><rect class=${`p${index % 8}`} width="10" height="10" rx="2" /></svg>`;
}

function Budget({ data, tint }) {
  const used = data.sections.reduce((all, section) => all + section.tokens, 0);
  const headings = Math.max(0, data.tokens - used);
  const parts = data.sections.map((section) => ({ name: section.name, value: section.tokens, tint: tint[section.name] }));
  const most = data.max_tokens || data.tokens;
  const told = data.sections.map((one) => `${one.title} ${one.tokens}`).join(", ");
  return html`<${Card} title="Tokens" tone="tokens" aside=${`${number(data.tokens)} of ${number(most)}`}>
    <${StackedBar} parts=${parts} total=${Math.max(1, data.tokens)} label=${`Tokens by section: ${plain(told)}`} />
    <progress class="budget" max=${most} value=${Math.min(most, data.tokens)} aria-label=${`${data.tokens} of ${most} tokens are used`}></progress>
    <ol class="legend">${data.sections.map((section, index) => html`<li key=${section.name}><a href=${location.hash} onClick=${(event) => {
      event.preventDefault();
      const place = document.getElementById(`section-${index}`);
      place?.scrollIntoView({ block: "start" });
      place?.querySelector("a, summary")?.focus({ preventScroll: true });
    }}><${Swatch} index=${tint[section.name]} /><span><${Text} text=${section.title} most=${80} /></span></a><span class="num">${number(section.tokens)}</span></li>`)}
      ${headings > 0 && html`<li class="free"><span><svg class="swatch" viewBox="0 0 10 10" aria-hidden="true"><rect class="rest" width="10" height="10" rx="2" /></svg><span>Headings</span></span>
        <span class="num">${number(headings)}</span></li>`}</ol>
  <//>`;
}

function Omitted({ workspace, omitted }) {
  return html`<${Card} title="Left out" aside=${omitted.length ? plural(omitted.length, "item") : null}>
    ${omitted.length === 0 ? html`<p class="note">Nothing: everything that was found had room.</p>`
      : html`<ul class="rows"><${Some} most=${12} of=${omitted} item=${(one, place) => html`<li key=${`${one.id}/${place}`}><${Text} text=${one.text || one.id} most=${240} />
        <p class="note"><${Text} text=${one.why ?? one.reason} most=${200} /></p></li>`} /></ul>`}
  <//>`;
}

const LATE = { __proto__: null, lock: "what other processes recorded", search: "the search", recap: "the recap of the day" };

/** What a deadline cut off, in words. */
const late = (what) => LATE[what] ?? (what.startsWith("log:") ? "all earlier messages" : plain(what));

function Shown({ workspace, data, tint, reload }) {
  const [raw, setRaw] = useState(false);
  return html`<div class="columns context-columns">
    <div class="stack">
      <div class="tabs" role="group" aria-label="Form"><button aria-pressed=${raw ? "false" : "true"} onClick=${() => setRaw(false)}>Sections</button>
        <button aria-pressed=${raw ? "true" : "false"} onClick=${() => setRaw(true)}>The text itself</button></div>
      ${data.late?.length > 0 && html`<p class="note">A deadline left no time for ${data.late.map(late).join(", ")}. <button class="quiet" onClick=${reload}>Ask again</button></p>`}
      ${data.lexical && html`<p class="note">Recalled by words alone: <${Text} text=${data.lexical} most=${300} /></p>`}
      ${raw ? html`<${Card} title="As an agent reads it"><${Text} block text=${data.text} /><//>` : html`<${Sections} workspace=${workspace} data=${data} tint=${tint} />`}
    </div>
    <div class="stack aside-stack">
      <${Budget} data=${data} tint=${tint} />
      <${Omitted} workspace=${workspace} omitted=${data.omitted ?? []} />
    </div>
  </div>`;
}

function Differences({ workspace, a, b, message, tier, moving }) {
  const found = useGet([workspace, "context", "compare"], { a, b, message, tier });
  const list = (title, items, sign, tone) => html`<${Card} title=${title} aside=${number(items.length)}>
    ${items.length === 0 ? html`<p class="note">None.</p>` : html`<ul class="rows"><${Some} of=${items} item=${(item, index) => html`<li key=${`${item.id}/${index}`} class=${`differs ${tone}`}>
      <span class="sign" aria-hidden="true">${sign}</span><div><${Text} text=${item.text ?? item.after} most=${500} />
        ${item.before !== undefined && html`<p class="note">before: <${Text} text=${item.before} most=${400} /></p>`}
        <p class="note">${item.memory ? html`<${ItemLink} workspace=${workspace} id=${item.memory} row />` : html`<code><${Text} text=${item.id} most=${60} /></code>`}${item.why && html` · <${Text} text=${item.why} most=${200} />`}</p></div></li>`} /></ul>`}
  <//>`;
  return html`<div aria-busy=${found.loading || moving ? "true" : "false"}><${Loaded} from=${found} lines=${10}>${(data) => html`<div class="stack">
    <p class="lead">From event ${number(data.a.seq)} to event ${number(data.b.seq)}: ${number(data.tokens[0])} → ${number(data.tokens[1])} tokens.</p>
    <div class="columns">
      <div class="stack">${list("New in the context", data.added, "+", "add")}${list("Said otherwise", data.changed, "~", "")}</div>
      <div class="stack">${list("No longer in the context", data.removed, "−", "del")}
        <${Card} title="Files between them" aside=${number(data.files.length)}>
          ${data.files.length === 0 ? html`<p class="note">None.</p>` : html`<ul class="rows"><${Some} of=${data.files} item=${(file) => html`<li key=${file.path}><${FileLink} workspace=${workspace} path=${file.path} at=${data.b.seq} /> <${Badge}>${file.change}<//></li>`} /></ul>`}
        <//></div>
    </div></div>`}<//></div>`;
}

/** Sections keep their colour while the slider moves. */
function useTints(sections) {
  const tints = useRef(Object.create(null));
  for (const { name } of sections ?? []) tints.current[name] ??= Object.keys(tints.current).length;
  return tints.current;
}

export default function Context({ workspace, query }) {
  const moments = useGet([workspace, "moments"]);
  const last = moments.data?.last.seq ?? 0;
  const asked = Number(query.at) || 0;
  const [at, setAt] = useState(asked);
  const [b, setB] = useState(Number(query.with) || 0);
  const [message, setMessage] = useState(query.message ?? "");
  const shownAt = Math.min(at || last, last);
  const comparing = b > 0;
  const held = useRested(`${at}/${b}`, 220);
  const moving = held !== `${at}/${b}`;
  const [rested, restedB] = held.split("/").map(Number);
  // The address follows the slider, and the slider an address that somebody else changed: a link, the way back.
  const written = useRef(null);
  useEffect(() => {
    if (written.current === `${query.at ?? ""}/${query.with ?? ""}`) return;
    setAt(asked);
    setB(Number(query.with) || 0);
  }, [query.at, query.with]);
  useEffect(() => {
    if (!moments.data) return;
    const now = { at: rested && rested < last ? rested : "", with: restedB || "" };
    if (String(now.at) === (query.at ?? "") && String(now.with) === (query.with ?? "")) return;
    written.current = `${now.at}/${now.with}`;
    setQuery(now);
  }, [rested, restedB, Boolean(moments.data)]);
  const found = useGet(moments.data && !comparing ? [workspace, "context"] : null, { at: rested && rested < last ? rested : "", message: query.message, tier: query.tier });
  const tint = useTints(found.data?.sections);
  // The first answer of a server has no time to load the search; a second one, at once, has it.
  const asking = `${rested}/${query.message}/${query.tier}`;
  const again = useRef(null);
  useEffect(() => {
    if (found.data?.late?.length && !found.loading && again.current !== asking) {
      again.current = asking;
      found.reload();
    }
  }, [found.data, found.loading]);
  const timer = useRef(null);
  useStream(workspace, moments.data ? last : null, () => {
    timer.current ??= setTimeout(() => {
      timer.current = null;
      moments.reload();
      if (!rested || rested >= last) found.reload();
    }, 1500);
  });
  useEffect(() => () => clearTimeout(timer.current), []);
  const submit = (event) => {
    event.preventDefault();
    setQuery({ message: message.trim() });
  };
  const compare = () => {
    if (comparing) setB(0);
    else {
      // From the moment that is shown, or the mark before the end, to now.
      const marks = moments.data.marks.filter((mark) => mark.seq < last);
      if (shownAt >= last) setAt(marks.at(-Math.min(8, marks.length))?.seq ?? 1);
      setB(last);
    }
  };
  return html`<${ViewHead} title="Context" aside=${moments.data && last > 1 && html`<button aria-pressed=${comparing ? "true" : "false"} onClick=${compare}>Compare two moments</button>`}>
      What an agent would see now, or would have seen at any earlier moment, and why.
    <//>
    <${Loaded} from=${moments} lines=${10}>${(data) => html`
      <section class="card moment-card" aria-label="Moment">
        <${Moments} moments=${data} value=${shownAt} onChange=${setAt} label=${comparing ? "From" : "Moment"} other=${comparing ? b : undefined}
          workspace=${workspace} shownAt=${comparing || found.data?.seq !== shownAt ? null : found.data?.moment_at} />
        ${comparing && html`<${Moments} moments=${data} value=${Math.min(b, last)} onChange=${setB} label="To" other=${shownAt} workspace=${workspace} />`}
        <form class="filters" onSubmit=${submit}>
          <${Field} label="If the message were" wide><input type="text" data-search value=${message} maxlength="400" placeholder="the user's latest message at that moment" onInput=${(event) => setMessage(event.currentTarget.value)} onBlur=${submit} /><//>
          <${Choice} label="Tier" value=${query.tier ?? ""} options=${TIERS} onChange=${(tier) => setQuery({ tier })} />
          <button type="submit">Show</button>
        </form>
      </section>
      ${comparing && !restedB ? html`<${Skeleton} lines=${10} />`
        : comparing ? html`<${Differences} workspace=${workspace} moving=${moving} a=${rested || Math.max(1, last - 1)} b=${Math.min(restedB, last)} message=${query.message} tier=${query.tier} />`
        : html`<div aria-busy=${found.loading || moving ? "true" : "false"}><${Loaded} from=${found} lines=${12}>${(context) => html`<${Shown} workspace=${workspace} data=${context} tint=${tint} reload=${found.reload} />`}<//></div>`}`}<//>`;
}
