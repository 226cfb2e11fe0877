// Search over everything: files, messages, memory.
import { useGet } from "../api.js";
import { html, useEffect, useState } from "../lib.js";
import { Badge, Choice, Empty, EventLink, Field, FileLink, ItemLink, Loaded, Text, ViewHead, When } from "../parts.js";
import { setQuery } from "../router.js";
import { plural, shorten, visible } from "../text.js";

const KINDS = [["", "Everything"], ["artifact", "Files"], ["docs", "Documents"], ["source", "Source code"], ["message", "Messages"], ["memory", "Memory"], ["tool", "Tool output"]];

/** The part of a long text around the first word that is found in it. */
function around(text, words) {
  const low = text.toLowerCase();
  const at = Math.min(...words.map((word) => low.indexOf(word.toLowerCase())).map((place) => (place < 0 ? Infinity : place)));
  const from = at === Infinity || at < 200 ? 0 : text.lastIndexOf("\n", at - 80) + 1 || at - 80;
  return (from ? "… " : "") + shorten(text.slice(from), 700);
}

/** Mark the words of the query in a text. */
function Found({ text, words }) {
  const shown = around(String(text ?? ""), words);
  const wanted = words.filter((word) => word.length > 1).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (!wanted.length) return html`<${Text} text=${shown} />`;
  const parts = shown.split(new RegExp(`(${wanted.join("|")})`, "giu"));
  return html`<span class="text">${parts.map((part, index) => (index % 2 ? html`<mark key=${index}>${visible(part)}</mark>` : visible(part)))}</span>`;
}

function Hit({ workspace, hit, words }) {
  const lines = Array.isArray(hit.lines) ? hit.lines.filter(Boolean).join("–") : hit.lines;
  return html`<li class="hit card">
    <p class="hit-head"><${Badge}>${String(hit.kind).replaceAll("_", " ")}<//>
      ${hit.path && html`<${FileLink} workspace=${workspace} path=${hit.path} row />`}
      ${hit.path && lines && html`<span class="muted">lines ${lines}</span>`}
      ${hit.item && html`<${ItemLink} workspace=${workspace} id=${hit.item} row=${!hit.path} />`}
      ${hit.seq > 0 && html`<span class="muted">event <${EventLink} workspace=${workspace} seq=${hit.seq} row=${!hit.path && !hit.item} /></span>`}
      ${hit.at && html`<${When} at=${hit.at} date />`}
    </p>
    <div class="hit-text"><${Found} text=${hit.text} words=${words} /></div>
    ${hit.why && html`<p class="note"><${Text} text=${String(hit.why).replace(/\b(words|meaning) (\d+)/g, "rank $2 by $1")} most=${300} /></p>`}
  </li>`;
}

export default function Search({ workspace, query }) {
  const [words, setWords] = useState(query.q ?? "");
  useEffect(() => setWords(query.q ?? ""), [query.q]);
  const asked = (query.q ?? "").trim();
  const found = useGet(asked ? [workspace, "search"] : null, { q: asked, kind: query.kind, limit: 50 });
  const submit = (event) => {
    event.preventDefault();
    setQuery({ q: words.trim() }, { replace: false });
  };
  return html`<${ViewHead} title="Search">Files, messages and memory, by words and by meaning.<//>
    <form class="filters" role="search" onSubmit=${submit}>
      <${Field} label="Search for" wide><input type="search" data-search value=${words} maxlength="400" autocomplete="off"
        onInput=${(event) => setWords(event.currentTarget.value)} /><//>
      <${Choice} label="In" value=${query.kind ?? ""} options=${KINDS} onChange=${(kind) => setQuery({ kind })} />
      <button class="primary" type="submit">Search</button>
    </form>
    ${!asked ? html`<${Empty} title="What are you looking for?">A few words, a file's name, or a question.<//>`
      : html`<div aria-busy=${found.loading ? "true" : "false"}><${Loaded} from=${found} lines=${10}>${(data) => html`
        ${data.lexical && html`<p class="note gap">By words alone: <${Text} text=${data.lexical} most=${300} /></p>`}
        ${data.hits.length === 0 ? html`<${Empty} title="Nothing was found.">Use fewer or other words.<//>`
          : html`<p class="hidden-text" role="status">${plural(data.hits.length, "hit")}</p>
            <ol class="stack">${data.hits.map((hit, index) => html`<${Hit} key=${index} workspace=${workspace} hit=${hit} words=${asked.split(/\s+/)} />`)}</ol>`}`}<//></div>`}`;
}
