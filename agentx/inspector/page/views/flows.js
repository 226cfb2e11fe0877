// Flows: procedures for tasks that come back, and how often they worked.
import { useGet } from "../api.js";
import { Interval } from "../figures.js";
import { html } from "../lib.js";
import { useFresh } from "../live.js";
import { Badge, Empty, EventLink, ItemLink, Loaded, Text, ViewHead, When } from "../parts.js";
import { link } from "../router.js";
import { plain } from "../text.js";
import { outcomeTone, statusTone, words } from "../words.js";

const DOTS = 40;
const percent = (share) => `${Math.round(share * 100)}%`;

/** Each run as a dot that leads to its event: passed, failed, or not followed. */
function Runs({ workspace, runs }) {
  if (!runs?.length) return null;
  const told = (run) => `${words(run.outcome)}${run.steps_seen ? `, steps seen ${Array.isArray(run.steps_seen) ? run.steps_seen.join(" of ") : run.steps_seen}` : ""}`;
  return html`<div class="flow-runs"><h3>Runs, the latest last</h3><ol>${runs.slice(-DOTS).map((run) => html`<li key=${run.seq}>
    <a class=${`run-dot ${run.outcome === "passed" ? "good" : run.outcome === "failed" ? "bad" : ""}`} href=${link(workspace, "event", run.seq)}
      title=${plain(`${told(run)}, event ${run.seq}`)}><span aria-hidden="true">${run.outcome === "passed" ? "✓" : run.outcome === "failed" ? "✕" : "–"}</span>
      <span class="hidden-text">${plain(told(run))}, event ${run.seq}</span></a></li>`)}</ol></div>`;
}

function Flow({ workspace, flow }) {
  const used = Number(flow.used) || 0;
  const mean = flow.rate ?? 0;
  const how = flow.standing || (used ? "" : "unused");
  return html`<li class="card flow">
    <header class="card-head"><h2><${ItemLink} workspace=${workspace} id=${flow.id} text=${flow.text} row=${true} /></h2>
      <span class="badges">${flow.status !== "active" && html`<${Badge} tone=${statusTone(flow.status)}>${words(flow.status)}<//>`}
        ${how && html`<${Badge} tone=${outcomeTone(how)}>${how}<//>`}</span></header>
    <div class="flow-body">
      <div><ol class="steps">${flow.steps.map((step, index) => html`<li key=${index}><${Text} text=${step} most=${400} /></li>`)}</ol></div>
      <div class="stack tight">
        <div>${used > 0
          ? html`<p class="rate"><strong>${percent(mean)}</strong> <span class="note"><${Text} text=${flow.told || `${flow.held} of ${used} held`} most=${200} /></span></p>
            <${Interval} low=${flow.low ?? 0} mean=${mean} high=${flow.high ?? 1} tone=${outcomeTone(how)}
              label=${`Worked in ${percent(mean)} of ${used} runs; between ${percent(flow.low ?? 0)} and ${percent(flow.high ?? 1)} at 95% confidence`} />`
          : html`<p class="note">Nobody has followed it yet: a run counts when its task calls for the flow and its calls show at least half of the steps.</p>`}</div>
        <${Runs} workspace=${workspace} runs=${flow.runs} />
        <p class="note">${flow.trigger?.length > 0 && html`Called for by ${(Array.isArray(flow.trigger) ? flow.trigger : [flow.trigger]).map((phrase, index) => html`${index ? ", " : ""}<q><${Text} text=${phrase} most=${120} /></q>`)}. `}
          ${flow.needs_approval && "It asks for approval before it starts. "}
          ${flow.version > 1 && `Version ${flow.version}. `}
          ${flow.not_followed > 0 && `Matched and not followed ${flow.not_followed}×. `}</p>
        ${flow.advice && html`<p class="act-result warn"><${Text} text=${flow.advice} most=${300} /></p>`}
      </div>
    </div>
  </li>`;
}

/** The view. */
export default function Flows({ workspace }) {
  const found = useGet([workspace, "flows"]);
  useFresh(workspace, found.reload, (row) => row.type === "Concluded" || row.type === "TaskGraded");
  return html`<${ViewHead} title="Flows">Procedures for tasks that come back. An agent is shown the one that its task calls for; each run is measured.<//>
    <${Loaded} from=${found}>${({ flows }) => (flows.length
      ? html`<ul class="stack">${flows.map((flow) => html`<${Flow} key=${flow.id} workspace=${workspace} flow=${flow} />`)}</ul>`
      : html`<${Empty} title="There are no flows.">Write a procedure down once: <code>agentx flow add "deploy to production" --step "Run the tests."</code>
          Or let <code>agentx flow backtest</code> propose those that past runs share.<//>`)}<//>`;
}
