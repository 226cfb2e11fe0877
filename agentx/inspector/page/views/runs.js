// Runs: what agents worked on, how it ended, what it took; one run as a list of its steps.
import { get, useGet } from "../api.js";
import { DurationBar } from "../figures.js";
import { html, useEffect, useState } from "../lib.js";
import { useFresh } from "../live.js";
import { Badge, Card, Empty, ErrorBox, EventLink, Facts, Loaded, Text, ViewHead, When } from "../parts.js";
import { link } from "../router.js";
import { duration, number, plain, plural, short } from "../text.js";
import { outcomeTone, outcomeWords } from "../words.js";

const LIMIT = 50;
/** Characters of a task in the title of its run; the whole stands below. */
const TITLE = 110;

const outcomeOf = (run) => run.ended?.outcome ?? run.status ?? "RUNNING";
/** US dollars, with as many digits as a small sum needs. */
const dollars = (cost) => (cost ? `$${cost < 0.1 ? cost.toFixed(4) : cost.toFixed(2)}` : "–");

function Row({ workspace, run, longest }) {
  const outcome = outcomeOf(run);
  return html`<li class="run-row">
    <a class="run-task" href=${link(workspace, "runs", run.id)} data-row="true"><${Text} text=${run.task || "(no task)"} most=${160} /></a>
    <div class="run-meta"><code><${Text} text=${run.id} most=${40} /></code><span><${Text} text=${run.agent} most=${40} /></span>
      <${When} at=${run.started?.at} date=${true} />
      ${run.directed && html`<${Badge} title=${plain(run.directed.reason)}>directed<//>`}</div>
    <div class="run-state"><${Badge} tone=${outcomeTone(outcome)}>${outcomeWords(outcome)}<//></div>
    <dl class="run-figures"><div><dt>Steps</dt><dd>${number(run.steps)}</dd></div>
      <div><dt>Tokens</dt><dd>${run.tokens ? short((run.tokens.in ?? 0) + (run.tokens.out ?? 0)) : "–"}</dd></div>
      <div><dt>Cost</dt><dd>${dollars(run.cost)}</dd></div>
      <div class="run-took"><dt>Took</dt><dd>${duration(run.duration_s)} <${DurationBar} share=${longest ? Math.log1p(run.duration_s ?? 0) / Math.log1p(longest) : 0} tone=${outcomeTone(outcome)} /></dd></div></dl>
  </li>`;
}

function RunList({ workspace }) {
  const found = useGet([workspace, "runs"], { limit: LIMIT });
  const [older, setOlder] = useState([]);
  const [next, setNext] = useState(null);
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  useFresh(workspace, found.reload, (row) => ["RunStarted", "RunEnded", "ApprovalDecided"].includes(row.type));
  useEffect(() => {
    if (found.data && !older.length) setNext(found.data.next ?? null);
  }, [found.data]);
  const more = async () => {
    setBusy(true);
    try {
      const data = await get([workspace, "runs"], { before: next, limit: LIMIT });
      setOlder((was) => [...was, ...data.runs]);
      setNext(data.next ?? null);
      setError(null);
    } catch (failed) {
      setError(failed);
    } finally {
      setBusy(false);
    }
  };
  return html`<${ViewHead} title="Runs">Agents at work, the latest first. The bar compares how long each took, on a logarithmic scale.<//>
    <${Loaded} from=${found} lines=${10}>${(data) => {
      const known = new Set(data.runs.map((run) => run.id));
      const runs = [...data.runs, ...older.filter((run) => !known.has(run.id))];
      const longest = Math.max(0, ...runs.map((run) => run.duration_s ?? 0));
      if (!runs.length) return html`<${Empty} title="No agent has worked here yet."><code>agentx run "Summarise the notes."</code> lets one work on a message.<//>`;
      return html`<div class="run-row run-heads" aria-hidden="true"><span>Task</span><span class="run-state">Status</span><span class="run-figures"><span>Steps</span><span>Tokens</span><span>Cost</span><span>Took</span></span></div>
        <ul class="rows panel runs">${runs.map((run) => html`<${Row} key=${run.id} workspace=${workspace} run=${run} longest=${longest} />`)}</ul>
        <${ErrorBox} error=${error} retry=${more} />
        ${next !== null && html`<div class="pager"><button disabled=${busy} onClick=${more}>${busy ? "Loading …" : "Earlier runs"}</button></div>`}`;
    }}<//>`;
}

/** What a director saw, concluded and chose. */
function Directive({ workspace, one }) {
  const part = (name, text) => text && html`<div class="directive-part"><h3>${name}</h3><p><${Text} text=${text} most=${3000} /></p></div>`;
  return html`<${Card} title="What the director said" aside=${html`<${EventLink} workspace=${workspace} seq=${one.seq} />`}>
    ${part("Asked because", one.reason)}${part("It failed", one.error)}${part("What it saw", one.summary)}${part("Strategy", one.strategy)}${part("Doubts", one.reflection)}
    ${one.prompt && html`<details class="prompt"><summary>The prompt that it wrote</summary><${Text} text=${one.prompt} block=${true} /></details>`}
  <//>`;
}

const STEP = { AgentMessageSent: "answer", AgentThoughtProcess: "thought" };

/** The steps one below the other, each with a bar that begins when it began. */
function Steps({ workspace, steps, whole }) {
  let from = 0;
  return html`<ol class="run-steps">${steps.map((step, index) => {
    const took = step.duration_s ?? 0;
    const start = from;
    from += took;
    return html`<li key=${step.seq} class=${step.ok === false ? "bad" : ""}>
      <span class="step-number">${index + 1}</span>
      <span class="step-what"><strong><${Text} text=${step.tool || STEP[step.type] || step.type} most=${60} /></strong> <${EventLink} workspace=${workspace} seq=${step.seq} text=${step.text} row=${true} /></span>
      <span class="step-state">${step.ok === false ? html`<${Badge} tone=${outcomeTone(step.status)}>${outcomeWords(step.status)}<//>` : null}</span>
      <span class="step-took">${step.tool ? duration(step.duration_s) : ""}</span>
      ${step.tool && html`<${DurationBar} from=${whole ? start / whole : 0} share=${whole ? took / whole : 0} tone=${step.ok === false ? "bad" : ""} />`}
    </li>`;
  })}</ol>`;
}

function OneRun({ workspace, id }) {
  const found = useGet([workspace, "runs", id]);
  useFresh(workspace, found.reload, (row) => row.run === id || row.type === "RunEnded" || row.type === "ApprovalDecided");
  return html`<p class="back"><a href=${link(workspace, "runs")}>← Runs</a></p>
    <${Loaded} from=${found}>${(run) => {
      const outcome = outcomeOf(run);
      const { steps } = run;
      const whole = steps.reduce((sum, step) => sum + (step.duration_s ?? 0), 0);
      const tools = Object.entries(run.tools ?? {}).sort(([, a], [, b]) => b - a);
      const directives = [run.directed, ...run.directives].filter((one, index, all) => one && all.findIndex((other) => other?.seq === one.seq) === index);
      return html`<${ViewHead} title=${html`<${Text} text=${run.task || "(no task)"} most=${TITLE} />`}>
          <span class="badges"><code><${Text} text=${run.id} most=${40} /></code> <span><${Text} text=${run.agent} most=${40} /></span>
            <${Badge} tone=${outcomeTone(outcome)}>${outcomeWords(outcome)}<//></span><//>
        <div class="columns wide-left">
          <div class="stack">
            ${directives.map((one) => html`<${Directive} key=${one.seq} workspace=${workspace} one=${one} />`)}
            ${run.prompt?.text?.length > TITLE && html`<${Card} title="Task"><${Text} text=${run.prompt.text} most=${600} block=${true} cut=${run.prompt.cut} /><//>`}
            <${Card} title="Steps" aside=${steps.length > 0 && `${plural(steps.length, "step")} · ${duration(whole)} in tools`}>
              ${steps.length ? html`<${Steps} workspace=${workspace} steps=${steps} whole=${whole} />` : html`<p class="note">No tool was called.</p>`}<//>
          </div>
          <div class="stack">
            <${Card} title="What it took"><${Facts} pairs=${[
              ["Started", run.started && html`<${When} at=${run.started.at} date=${true} /> <${EventLink} workspace=${workspace} seq=${run.started.seq} />`],
              ["Ended", run.ended && html`<${When} at=${run.ended.at} date=${true} /> <${EventLink} workspace=${workspace} seq=${run.ended.seq} />`],
              ["Duration", duration(run.duration_s)],
              ["Tokens in", run.tokens && number(run.tokens.in)], ["Tokens out", run.tokens && number(run.tokens.out)],
              ["Cost", dollars(run.cost)], ["Model", run.model && html`<${Text} text=${run.model} most=${100} />`], ["Schedule", run.schedule && html`<${Text} text=${run.schedule} most=${80} />`],
            ]} /><//>
            ${(run.summary || run.ended?.reason) && html`<${Card} title="How it ended">
              ${run.summary && html`<p><${Text} text=${run.summary} most=${3000} /></p>`}${run.ended?.reason && html`<p class="note"><${Text} text=${run.ended.reason} most=${2000} /></p>`}<//>`}
            ${tools.length > 0 && html`<${Card} title="Tools"><ul class="rows tools">${tools.map(([name, count]) => html`<li key=${name}><div class="row"><code><${Text} text=${name} most=${80} /></code> <span class="note">${count}×</span></div></li>`)}</ul><//>`}
          </div>
        </div>`;
    }}<//>`;
}

/** The view. */
export default function Runs({ workspace, arg }) {
  return arg === null ? html`<${RunList} workspace=${workspace} />` : html`<${OneRun} key=${arg} workspace=${workspace} id=${arg} />`;
}
