// Flows: procedures for tasks that come back, and how often they worked.
import { useGet } from "../api.js";
import { Interval, Ticked } from "../figures.js";
import { html } from "../lib.js";
import { useFresh } from "../live.js";
import { Badge, Empty, EventLink, ItemLink, Loaded, Text, ViewHead, When } from "../parts.js";
import { link } from "../router.js";
import { plain } from "../text.js";
import { outcomeTone, statusTone, words } from "../words.js";

const DOTS = 40;
const percent = (share) => `${Math.round(share * 100)}%`;

const toneOf = (run) => (run.followed ? outcomeTone(run.outcome) : "");

/** Each run as a dot that leads to its event: passed, failed, or not followed. */
function Runs({ workspace, runs }) {
  if (!runs?.length) return null;
  const told = (run) => `${run.followed ? words(run.outcome) : "matched, not followed"}${run.steps ? `, steps seen ${run.steps_seen} of ${run.steps}` : ""}`;
  return html`<div class="flow-runs"><h3>Runs, the latest last</h3><ol>${[...runs].sort((a, b) => a.seq - b.seq).slice(-DOTS).map((run) => html`<li key=${run.seq}>
    <a class=${`run-dot ${toneOf(run)}`} href=${link(workspace, "event", run.seq)}
      title=${plain(`${told(run)}, event ${run.seq}`)}><span aria-hidden="true">${{ good: "✓", bad: "✕" }[toneOf(run)] ?? "–"}</span>
      <span class="hidden-text">${plain(told(run))}, event ${run.seq}</span></a></li>`)}</ol></div>`;
}

function Flow({ workspace, flow, advice }) {
  const { low, mean, high, tries: used } = flow.rate;
  const how = flow.standing || (used ? "" : "unused");
  return html`<li class="card flow">
    <header class="card-head"><h2><${ItemLink} workspace=${workspace} id=${flow.id} text=${flow.text} row=${true} /></h2>
      <span class="badges">${flow.status !== "active" && html`<${Badge} tone=${statusTone(flow.status)}>${words(flow.status)}<//>`}
        ${how && html`<${Badge} tone=${outcomeTone(how)}>${how}<//>`}</span></header>
    <div class="flow-body">
      <div><ol class="steps">${flow.steps.map((step, index) => html`<li key=${index}><${Ticked} text=${step} /></li>`)}</ol></div>
      <div class="stack tight">
        <div>${used > 0
          ? html`<p class="rate"><strong>${percent(mean)}</strong> <span class="note"><${Text} text=${flow.told.replace(/^\d+% /, "")} most=${200} /></span></p>
            <${Interval} low=${low} mean=${mean} high=${high} tone=${outcomeTone(how)}
              label=${`Worked in ${percent(mean)} of ${used} runs; between ${percent(low)} and ${percent(high)} at 95% confidence`} />`
          : html`<p class="note">Nobody has followed it yet: a run counts when its task calls for the flow and its calls show at least half of the steps.</p>`}</div>
        <${Runs} workspace=${workspace} runs=${flow.runs} />
        <p class="note">${flow.triggers?.length > 0 && html`Called for by ${flow.triggers.map((phrase, index) => html`${index ? ", " : ""}<q><${Text} text=${phrase} most=${120} /></q>`)}. `}
          ${flow.needs_approval && "It asks for approval before it starts. "}
          ${flow.version > 1 && `Version ${flow.version}. `}
          ${flow.not_followed > 0 && `Matched and not followed ${flow.not_followed}×. `}</p>
        ${advice.map((one) => html`<p key=${one.action} class="act-result warn"><strong>To ${one.action}.</strong> <${Text} text=${one.why} most=${300} /></p>`)}
      </div>
    </div>
  </li>`;
}

/** The view. */
export default function Flows({ workspace }) {
  const found = useGet([workspace, "flows"]);
  useFresh(workspace, found.reload, (row) => row.type === "Concluded" || row.type === "TaskGraded");
  return html`<${ViewHead} title="Flows">Procedures for tasks that come back. An agent is shown the one that its task calls for; each run is measured.<//>
    <${Loaded} from=${found}>${({ flows, advice }) => (flows.length
      ? html`<ul class="stack">${flows.map((flow) => html`<${Flow} key=${flow.id} workspace=${workspace} flow=${flow} advice=${(advice ?? []).filter((one) => one.item === flow.id)} />`)}</ul>`
      : html`<${Empty} title="There are no flows.">Write a procedure down once: <code>agentx flow add "deploy to production" --step "Run the tests."</code>${" "}
          Or let <code>agentx flow backtest</code> propose those that past runs share.<//>`)}<//>`;
}
