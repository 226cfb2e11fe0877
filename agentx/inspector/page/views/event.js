// One event: what led to it, what came of it, the memory that came of it, and its commit beside it.
import { useGet } from "../api.js";
import { html } from "../lib.js";
import { Actor, Badge, Card, Diff, Empty, EventLink, Facts, FileLink, ItemLink, Loaded, Text, ViewHead, When } from "../parts.js";
import { link } from "../router.js";
import { number, plural, shorten, typeTitle, visible } from "../text.js";

/** Fields of an event's payload that the page shows elsewhere, or that say nothing to a reader. */
const ELSEWHERE = new Set(["changes", "type"]);

/** Texts that somebody wrote to be read; the others are set like code. */
const PROSE = new Set(["body", "task", "prompt", "summary"]);

/** Events that led to this one, or that came of it. */
function Chain({ workspace, title, events, none }) {
  return html`<${Card} title=${title} aside=${events.length > 1 ? number(events.length) : null}>
    ${events.length === 0 ? html`<p class="note">${none}</p>` : html`<ul class="rows chain">${events.map((one) => html`<li key=${one.seq}>
      <${EventLink} workspace=${workspace} seq=${one.seq} text=${one.text} row />
      <p class="note">${one.why && html`<${Text} text=${one.why} most=${200} />`}${one.actor && html` · <${Actor} actor=${one.actor} />`}${one.at && html` · <${When} at=${one.at} />`}</p>
      ${one.quote && html`<blockquote><${Text} text=${one.quote} most=${600} /></blockquote>`}
    </li>`)}</ul>`}
  <//>`;
}

const CAME = new Set(["added", "changed", "quotes it"]);

function Memory({ workspace, items }) {
  const list = (title, some) => some.length > 0 && html`<${Card} title=${title} aside=${plural(some.length, "item")}>
    <ul class="rows">${some.map((item) => html`<li key=${item.id + item.what}>
      <div class="row"><${ItemLink} workspace=${workspace} id=${item.id} text=${item.text || item.id} row />
      <p class="note"><code><${Text} text=${item.id} most=${60} /></code> · ${String(item.kind || "item").replaceAll("_", " ")} · ${item.what}</p></div></li>`)}</ul>
  <//>`;
  return html`${list("What memory came of it", items.filter((item) => CAME.has(item.what)))}
    ${list("Memory that bore on it", items.filter((item) => !CAME.has(item.what)))}`;
}

const CHANGES = { __proto__: null, added: "good", created: "good", removed: "bad", deleted: "bad" };

function Files({ workspace, files, seq }) {
  return html`<ul class="files">${files.map((file) => html`<li key=${file.path} class="file">
    <p class="file-head"><${FileLink} workspace=${workspace} path=${file.path} at=${seq} />
      <span class="file-facts"><${Badge} tone=${CHANGES[file.change] ?? ""}>${file.change}<//> ${file.added !== undefined && html`<span class="plus">+${number(file.added)}</span> <span class="minus">−${number(file.removed)}</span>`}</span></p>
    ${file.missing ? html`<p class="note pad">The content is not in the repository any more.</p>`
      : file.binary ? html`<p class="note pad">A binary file; its content is not compared.</p>`
      : file.large ? html`<p class="note pad">Too large to be compared here.</p>`
      : file.diff ? html`<${Diff} text=${file.diff} cut=${file.cut} />` : html`<p class="note pad">Nothing changed in its text.</p>`}
  </li>`)}</ul>`;
}

function Commit({ workspace, commit, files, seq }) {
  const shown = files ?? commit?.files ?? [];
  return html`<${Card} title=${commit ? "The commit" : "Files"} aside=${commit && html`<code>${String(commit.id).slice(0, 10)}</code>`}>
    ${commit && html`<div class="commit"><p class="commit-subject"><${Text} text=${commit.subject} most=${500} /></p>
      <p class="note"><${Text} text=${commit.author} most=${120} /> · <${When} at=${commit.at} date /></p></div>`}
    ${!commit && html`<p class="note">It is not in a commit yet: several events may share one, a moment later.</p>`}
    ${shown.length > 0 ? html`<${Files} workspace=${workspace} files=${shown} seq=${seq} />` : html`<p class="note">This event changed no file.</p>`}
  <//>`;
}

const empty = (value) => value === null || value === "" || value === undefined
  || (typeof value === "object" && Object.values(value).every(empty));

const large = (value) => (typeof value === "object" ? value !== null : String(value).length > 160 || String(value).includes("\n"));

/** A value of a payload: objects and lists as nested fields, long texts as blocks, six levels deep at most. */
function Value({ value, depth = 0 }) {
  if (typeof value === "string" && large(value)) return html`<${Text} block text=${value} most=${6000} />`;
  if (typeof value !== "object" || value === null) return html`<${Text} text=${String(value)} />`;
  if (depth > 5) return html`<code><${Text} text=${JSON.stringify(value)} most=${2000} /></code>`;
  return html`<${Fields} depth=${depth + 1} pairs=${Object.entries(value)} />`;
}

function Fields({ pairs, depth = 0 }) {
  const shown = pairs.filter(([, value]) => !empty(value));
  if (!shown.length) return null;
  return html`<dl class="fields">${shown.slice(0, 100).map(([name, value]) => [
    html`<dt key=${`t${name}`}>${visible(shorten(name.replaceAll("_", " "), 80))}</dt>`,
    html`<dd key=${`d${name}`} class=${large(value) ? "nested" : ""}><${Value} value=${value} depth=${depth} /></dd>`,
  ])}</dl>`;
}

export default function Event({ workspace, arg }) {
  const seq = Number(arg);
  const valid = Number.isSafeInteger(seq) && seq > 0;
  const found = useGet(valid ? [workspace, "events", seq] : null, undefined, { fresh: true });
  const overview = useGet([workspace, "overview"]);
  const newest = overview.data?.seq ?? Infinity;
  if (!valid) return html`<${ViewHead} title="Event" /><${Empty} title="An event is named by its number.">Choose one in the <a href=${link(workspace)}>timeline</a>.<//>`;
  const aside = html`
    <a class="button" href=${link(workspace, "context", null, { at: seq })} data-row>What an agent saw then</a>
    <span class="neighbours">${seq > 1 && html`<a class="button" rel="prev" href=${link(workspace, "event", seq - 1)} aria-label=${`Event before: ${seq - 1}`}>← ${seq - 1}</a>`}
    ${seq < newest && html`<a class="button" rel="next" href=${link(workspace, "event", seq + 1)} aria-label=${`Event after: ${seq + 1}`}>${seq + 1} →</a>`}</span>`;
  const event = found.data?.event;
  const type = found.data?.row?.type ?? event?.type;
  return html`<${ViewHead} title=${html`Event ${number(seq)}${type && html` <span class="h1-more">${visible(shorten(typeTitle(type), 60))}</span>`}`} aside=${aside} />
    <${Loaded} from=${found} lines=${12}>${(data) => html`<div class="columns">
      <div class="stack">
        <${Card} title="What happened">
          <p class="told"><${Text} text=${data.text} most=${2000} /></p>
          <${Facts} pairs=${[
            ["When", html`<${When} at=${event.at} date />`],
            ["Who", html`<${Actor} actor=${event.actor} />`],
            ["Run", event.run && html`<a href=${link(workspace, "timeline", null, { run: event.run })}><${Text} text=${event.run} most=${60} /></a>`],
            ["Key", event.key && html`<${Text} text=${event.key} most=${100} />`],
          ]} />
          ${Object.entries(data.bodies ?? {}).map(([name, body]) => html`<div class=${PROSE.has(name) ? "body prose" : "body"} key=${name}><h3>${visible(name.replaceAll("_", " "))}</h3><${Text} block text=${body.text} cut=${body.cut} />${body.note && html`<p class="note"><${Text} text=${body.note} /></p>`}</div>`)}
          <${Fields} pairs=${Object.entries(event.data ?? {}).filter(([name]) => !ELSEWHERE.has(name) && !Object.hasOwn(data.bodies ?? {}, name))} />
        <//>
        <${Chain} workspace=${workspace} title="What led to it" events=${data.cause ?? []} none="Nothing before it is named as its cause." />
        <${Chain} workspace=${workspace} title="What came of it" events=${data.effects ?? []} none="Nothing names it as its cause so far." />
        <${Card} title="As recorded">
          <details><summary>The whole event as JSON</summary><${Text} block text=${JSON.stringify(event, null, 2)} /></details>
        <//>
      </div>
      <div class="stack">
        <${Memory} workspace=${workspace} items=${data.items ?? []} />
        <${Commit} workspace=${workspace} commit=${data.commit} files=${data.files} seq=${seq} />
      </div>
    </div>`}<//>`;
}
