// All that is remembered, filtered; with an id, one item.
import { useGet } from "../api.js";
import { Meter } from "../figures.js";
import { html, useEffect, useRef, useState } from "../lib.js";
import { useFresh } from "../live.js";
import { Badge, Choice, Empty, Field, Loaded, Pager, Text, ViewHead, When } from "../parts.js";
import { link, setQuery } from "../router.js";
import { number, plural } from "../text.js";
import { KINDS, STATUSES, checkedTone, kindTitle, statusTone, words } from "../words.js";
import { MemoryItem } from "./item.js";

const LIMIT = 50;

/** A row: the sentence, then what it is; on the right its state. */
function Row({ workspace, item }) {
  return html`<li class=${`memory-row is-${item.status}`}>
    <a class="memory-main" href=${link(workspace, "memory", item.id)} data-row="true">
      <${Text} text=${item.text} most=${300} />
    </a>
    <div class="memory-meta">
      <code>${item.id}</code><span>${kindTitle(item.kind)}${item.sort && item.sort !== item.kind && ` (${words(item.sort)})`}</span>${item.trust && html`<span>from ${words(item.trust)}</span>`}
      ${item.at && html`<${When} at=${item.at} relative=${true} />`}
    </div>
    <div class="memory-state">
      ${item.pinned && html`<${Badge} tone="accent">pinned<//>`}
      ${item.checked && html`<${Badge} tone=${checkedTone(item.checked)}>${item.checked}<//>`}
      <${Badge} tone=${statusTone(item.status)}>${words(item.ended || item.status)}<//>
      ${item.kind === "rule" && html`<span class="score" title="Score, from 1 to 10"><${Meter} value=${item.score / 10} />${Number(item.score).toFixed(1)}</span>`}
    </div>
  </li>`;
}

/** Choices with how many there are; those without any are left out, unless chosen. */
function counted(counts, known, chosen, all) {
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const names = [...known.filter((name) => counts[name]), ...Object.keys(counts).filter((name) => !known.includes(name))];
  if (chosen && !names.includes(chosen)) names.push(chosen);
  return [["", `${all} (${number(total)})`], ...names.map((name) => [name, `${words(name)} (${number(counts[name] ?? 0)})`])];
}

function Filters({ data, query }) {
  const [typed, setTyped] = useState(query.q ?? "");
  const timer = useRef(0);
  useEffect(() => setTyped(query.q ?? ""), [query.q]);
  const search = (text) => {
    setTyped(text);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setQuery({ q: text, offset: "" }), 250);
  };
  return html`<div class="filters">
    <${Field} label="Words" wide=${true}><input type="search" data-search="true" placeholder="In the text of an item" value=${typed}
      onInput=${(event) => search(event.currentTarget.value)} /><//>
    <${Choice} label="Kind" value=${query.kind ?? ""} options=${counted(data?.kinds ?? {}, KINDS, query.kind, "All kinds")}
      onChange=${(kind) => setQuery({ kind, offset: "" })} />
    <${Choice} label="Status" value=${query.status ?? ""} options=${counted(data?.statuses ?? {}, STATUSES, query.status, "Any status")}
      onChange=${(status) => setQuery({ status, offset: "" })} />
  </div>`;
}

function MemoryList({ workspace, query }) {
  const offset = Number(query.offset) || 0;
  const found = useGet([workspace, "memory"], { kind: query.kind, status: query.status, q: query.q, offset, limit: LIMIT });
  useFresh(workspace, found.reload, (row) => row.type === "Concluded");
  const filtered = Boolean(query.kind || query.status || query.q);
  return html`<${ViewHead} title="Memory">What agents are told from now on, and what is kept behind it. A rule marked
      “enforced” is checked by code before a tool runs; “shown only” is words in the context.<//>
    <${Filters} data=${found.data} query=${query} />
    <${Loaded} from=${found} lines=${10}>${(data) => html`
      ${data.items.length === 0 && (filtered
        ? html`<${Empty} title="Nothing in memory fits these filters.">Choose another kind or status, or fewer words.<//>`
        : html`<${Empty} title="Nothing is remembered yet.">Demands in your messages come here by themselves. By hand:${" "}
            <code>agentx memory add "Never use tabs."</code><//>`)}
      ${data.items.length > 0 && html`<p class="count" role="status">${plural(data.total, "item")}</p>
        <ul class="rows panel">${data.items.map((item) => html`<${Row} key=${item.id} workspace=${workspace} item=${item} />`)}</ul>`}
      <${Pager} offset=${offset} limit=${LIMIT} total=${data.total} onOffset=${(next) => setQuery({ offset: next || "" }, {})} />`}<//>`;
}

/** The view. */
export default function Memory({ workspace, arg, query }) {
  return arg === null
    ? html`<${MemoryList} workspace=${workspace} query=${query} />`
    : html`<${MemoryItem} key=${arg} workspace=${workspace} id=${arg} />`;
}
