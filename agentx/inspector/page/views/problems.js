// Checks that fail, and how those that failed before were closed.
import { useGet } from "../api.js";
import { ActResult, Actions, useActs } from "../actions.js";
import { html } from "../lib.js";
import { useFresh } from "../live.js";
import { Badge, Empty, EventLink, ItemLink, Loaded, Text, ViewHead, When } from "../parts.js";
import { duration, number, plural } from "../text.js";
import { outcomeTone } from "../words.js";

const CLOSED = 100;

/** How long a problem was open; empty if a time is missing. */
function openFor(one) {
  const seconds = (Date.parse(one.closed?.at) - Date.parse(one.opened?.at)) / 1000;
  if (!(seconds >= 0)) return "";
  return seconds < 172_800 ? duration(seconds) : plural(Math.round(seconds / 86_400), "day");
}

function Open({ workspace, one, acts, reload }) {
  const where = one.path ? `${one.path}${one.line ? `:${one.line}` : ""}` : "";
  return html`<li class="card problem">
    <header class="card-head"><h2><${ItemLink} workspace=${workspace} id=${one.id} text=${one.check || one.text} row=${true} /></h2>
      <span class="badges"><${Badge} tone=${outcomeTone(one.priority)}>${one.priority}<//></span></header>
    <p class="problem-meta">${one.runner && html`<span><${Text} text=${one.runner} most=${60} /></span>`}
      ${where && html`<code><${Text} text=${where} most=${200} /></code>`}
      <span>failed ${plural(one.times ?? 1, "time")}</span>
      <span>since <${When} at=${one.opened?.at} date=${true} /> <${EventLink} workspace=${workspace} seq=${one.opened?.seq} /></span>
      ${one.last_seq > one.opened?.seq && html`<span>last in <${EventLink} workspace=${workspace} seq=${one.last_seq} /></span>`}</p>
    ${one.excerpt && html`<${Text} text=${one.excerpt} block=${true} />`}
    ${one.command && html`<p class="note">Found by <code><${Text} text=${one.command} most=${300} /></code>; it closes when a run shows that it passes.</p>`}
    <${Actions} item=${{ id: one.id, text: one.text }} may=${one.may} only=${["retire"]} acts=${acts} seq=${one.changed_seq} />
    ${acts.result?.id === one.id && html`<${ActResult} workspace=${workspace} result=${acts.result} onReload=${reload} />`}
  </li>`;
}

function Closed({ workspace, closed }) {
  return html`<h2 class="part-title">Closed</h2>
    <div class="table-wrap panel" tabindex="0" role="region" aria-label="Closed problems"><table class="closed-problems">
      <thead><tr><th scope="col">Problem</th><th scope="col">Closed by</th><th scope="col">When</th><th scope="col" class="num">Open for</th><th scope="col" class="num">Failed</th></tr></thead>
      <tbody>${closed.slice(0, CLOSED).map((one) => html`<tr key=${one.id}>
        <td><${ItemLink} workspace=${workspace} id=${one.id} text=${one.check || one.text} row=${true} /></td>
        <td>${one.outcome && html`<${Badge} tone=${one.outcome === "passed" ? "good" : ""}>${one.outcome}<//> `}<${Text} text=${one.closed?.by} most=${200} /> <${EventLink} workspace=${workspace} seq=${one.closed?.by_seq || one.closed?.seq} /></td>
        <td><${When} at=${one.closed?.at} date=${true} /></td>
        <td class="num">${openFor(one)}</td><td class="num">${number(one.times ?? 1)}×</td></tr>`)}</tbody>
    </table></div>
    ${closed.length > CLOSED && html`<p class="note">And ${closed.length - CLOSED} more, in <a href=${`#/${encodeURIComponent(workspace)}/memory?kind=hot_issue`}>memory</a>.</p>`}`;
}

/** The view. */
export default function Problems({ workspace }) {
  const found = useGet([workspace, "problems"]);
  const acts = useActs(workspace, found.reload);
  useFresh(workspace, found.reload, (row) => row.type === "Concluded");
  const reload = () => {
    acts.clear();
    found.reload();
  };
  return html`<${ViewHead} title="Problems">Checks that fail. Each agent is shown the open ones; a run that passes closes them.<//>
    <${Loaded} from=${found}>${({ open, closed }) => html`
      ${acts.result && !open.some((one) => one.id === acts.result.id) && html`<${ActResult} workspace=${workspace} result=${acts.result} onReload=${reload} />`}
      <h2 class="part-title">Open${open.length > 0 ? ` (${number(open.length)})` : ""}</h2>
      ${open.length === 0
        ? html`<${Empty} title=${closed.length ? "No check fails." : "No check has failed yet."}>A failing test, lint or build that an agent runs opens a problem here:${" "}
            <code>run_tests</code>, <code>run_lint</code>, <code>run_build</code>, or such a command.<//>`
        : html`<ul class="stack">${open.map((one) => html`<${Open} key=${one.id} workspace=${workspace} one=${one} acts=${acts} reload=${reload} />`)}</ul>`}
      ${closed.length > 0 && html`<${Closed} workspace=${workspace} closed=${closed} />`}`}<//>`;
}
