// A fleet: how long its queue was, what is at work, what each part of a run took, what failed, who works.
import { useGet } from "../api.js";
import { Chart } from "../chart.js";
import { Meter } from "../figures.js";
import { html, useEffect, useMemo, useRef } from "../lib.js";
import { Badge, Card, Choice, Empty, ErrorBox, Facts, Skeleton, StackedBar, Text, ViewHead, When } from "../parts.js";
import { setQuery } from "../router.js";
import { duration, number, plain, plural, short } from "../text.js";
import { outcomeTone, outcomeWords } from "../words.js";

const AGAIN_MS = 2000;
const WINDOWS = [["15", "15 minutes"], ["60", "1 hour"], ["360", "6 hours"], ["1440", "1 day"]];
/** The parts of a run in their order: name, words, tint. */
const PARTS = [
  ["queue", "in the queue", 5], ["fetch", "fetch", 2], ["open", "open", 1], ["run", "run", 0], ["push", "push", 6],
  ["wait", "waiting for the remote", 4], ["set_aside", "setting aside", 3],
];
const DEFAULT = "60";

const tone = (status) => (status === "QUEUED" ? "" : outcomeTone(status) || "bad");
const dollars = (cost) => (cost ? `$${cost < 0.1 ? cost.toFixed(4) : cost.toFixed(2)}` : "$0");
const iso = (seconds) => new Date(seconds * 1000).toISOString();

/** Ask again and again while the page is shown; what was there stays while the server or the database is away. */
function useFleet(minutes) {
  const found = useGet(["fleet"], { minutes });
  const last = useRef(null);
  if (found.data) last.current = found.data;
  useEffect(() => {
    const timer = setInterval(() => document.hidden || found.reload(), AGAIN_MS);
    return () => clearInterval(timer);
  }, [found.reload]);
  return { data: last.current, error: found.error, reload: found.reload };
}

function Tile({ name, value, note, tone: colour = "" }) {
  return html`<div class=${`tile ${colour}`}><dt>${name}</dt><dd><strong>${value}</strong>${note && html`<span class="note">${note}</span>`}</dd></div>`;
}

function Tiles({ data }) {
  const { counts, statuses, usage, workers } = data;
  const ended = Object.values(statuses).reduce((all, one) => all + one, 0);
  const failed = ended - (statuses.COMPLETED ?? 0);
  const sum = (name) => usage.reduce((all, one) => all + one[name], 0);
  const alive = workers.filter((one) => one.state !== "lost");
  const lost = workers.length - alive.length;
  const slots = alive.reduce((all, one) => all + one.slots, 0);
  return html`<dl class="tiles">
    <${Tile} name="Waiting" value=${number(counts.queued)} note=${counts.queued ? `the oldest for ${duration(data.oldest_s)}` : "nothing waits"} />
    <${Tile} name="At work" value=${number(counts.running)} note=${`of ${plural(slots, "slot")}`} tone=${counts.running ? "accent" : ""} />
    <${Tile} name="Ended" value=${number(ended)} note=${failed ? `${number(failed)} not in order` : "all in order"} tone=${failed ? "bad" : ""} />
    <${Tile} name="Workers" value=${number(alive.length)} note=${lost ? `${number(lost)} lost` : "all alive"} tone=${lost ? "bad" : ""} />
    <${Tile} name="Cost" value=${dollars(sum("cost"))} note="of known prices" />
    <${Tile} name="Tokens" value=${short(sum("in") + sum("out"))} note=${`${short(sum("in"))} in, ${short(sum("out"))} out`} />
  </dl>`;
}

function Depth({ depth }) {
  const drawn = useMemo(() => ({
    x: depth.x,
    series: [
      { label: "Waiting", values: depth.queued, token: "--warn", step: true },
      { label: "At work", values: depth.running, token: "--accent", step: true },
    ],
    y: [0, Math.max(4, ...depth.queued, ...depth.running) * 1.1],
  }), [depth]);
  return html`<${Card} title="The queue over time"><${Chart} ...${drawn} height=${190} digits=${0} label="Submissions that waited, and that were at work" /><//>`;
}

const partsOf = (row, values = row.parts) => PARTS
  .map(([name, words, tint]) => ({ name: words, tint, value: name === "queue" && row.queued_s !== undefined ? row.queued_s : values[name] ?? 0 }))
  .filter((part) => part.value > 0);
const inWords = (parts) => parts.map((part) => `${part.name} ${duration(part.value)}`).join(", ");

function Legend() {
  return html`<ul class="part-legend">${PARTS.slice(0, 5).map(([name, words, tint]) => html`<li key=${name}>
    <svg class="swatch" viewBox="0 0 10 10" aria-hidden="true"><rect class=${`p${tint}`} width="10" height="10" rx="2" /></svg>${words}</li>`)}</ul>`;
}

const Status = ({ status }) => html`<${Badge} tone=${tone(status)}><${Text} text=${outcomeWords(status)} most=${18} /><//>`;

function Run({ run, longest }) {
  const parts = partsOf(run);
  const whole = run.status === "QUEUED" ? run.queued_s : run.queued_s + run.work_s;
  const drawn = run.status === "RUNNING" ? [...parts, { name: "at work", value: run.work_s, tint: 0 }] : parts;
  return html`<li><details class="fleet-run">
    <summary data-row="true">
      <span class="fleet-what"><${Text} text=${run.workspace} most=${60} /></span>
      <${Status} status=${run.status} />
      <span class="fleet-bar"><${StackedBar} parts=${drawn} total=${Math.max(longest, whole)} label=${plain(inWords(drawn) || "nothing yet")} /></span>
      <span class="fleet-took">${duration(whole)}</span>
      <span class="fleet-when"><${When} at=${iso(run.at)} relative=${true} /></span>
    </summary>
    <div class="fleet-more">
      ${run.reason && html`<p class="fleet-why"><${Text} text=${run.reason} most=${600} /></p>`}
      <${Facts} pairs=${[
        ["Submission", html`<code><${Text} text=${run.submission} most=${80} /></code>`],
        ["Run", run.run && html`<code><${Text} text=${run.run} most=${80} /></code>`],
        ["Worker", run.worker && html`<${Text} text=${run.worker} most=${80} />`],
        ["Copy", run.copy && html`<${Text} text=${run.copy} most=${20} />`],
        ["Tokens", run.tokens ? number(run.tokens) : ""], ["Cost", run.cost ? dollars(run.cost) : ""],
        ...parts.map((part) => [part.name, duration(part.value)]),
      ]} />
    </div>
  </details></li>`;
}

function Runs({ runs }) {
  const times = runs.map((run) => run.queued_s + run.work_s).sort((a, b) => a - b);
  const longest = times[Math.floor(times.length * 0.9)] || 1;
  return html`<${Card} title="At work, and the latest" aside=${html`<${Legend} />`}>
    <ul class="rows">${runs.map((run) => html`<${Run} key=${run.submission} run=${run} longest=${longest} />`)}</ul><//>`;
}

function Workers({ workers, lease }) {
  const words = { alive: "good", draining: "warn", lost: "bad" };
  return html`<${Card} title="Workers">${workers.length
    ? html`<ul class="rows">${workers.map((one) => html`<li key=${one.name} class="fleet-worker">
      <div><strong><${Text} text=${one.name} most=${60} /></strong> <${Badge} tone=${words[one.state]}>${one.state}<//></div>
      <${Meter} value=${one.slots ? one.running / one.slots : 0} tone=${one.state === "lost" ? "off" : ""} />
      <p class="note">${number(one.running)} of ${plural(one.slots, "slot")} · sign of life ${duration(one.quiet_s)} ago${one.state === "lost" ? `, more than the lease of ${duration(lease)}` : ""}</p>
    </li>`)}</ul>`
    : html`<${Empty} title="No worker is alive."><code>agentx fleet worker</code> starts one here.<//>`}<//>`;
}

function Usage({ usage }) {
  if (!usage.length) return null;
  const most = Math.max(...usage.map((one) => one.cost)) || Math.max(...usage.map((one) => one.in + one.out)) || 1;
  return html`<${Card} title="Models">
    <ul class="rows">${usage.map((one) => html`<li key=${one.model} class="fleet-worker">
      <div class="split"><strong><${Text} text=${one.model} most=${60} /></strong><span>${dollars(one.cost)}</span></div>
      <${Meter} value=${(one.cost || one.in + one.out) / most} />
      <p class="note">${plural(one.runs, "run")} · ${short(one.in)} tokens in, ${short(one.out)} out</p></li>`)}</ul><//>`;
}

function Failures({ failures }) {
  if (!failures.length) return null;
  return html`<${Card} title="Not in order" tone="bad">
    <ul class="rows">${failures.map((run) => html`<li key=${run.submission}><div class="fleet-failure">
      <${Status} status=${run.status} />
      <div><strong><${Text} text=${run.workspace} most=${60} /></strong> <span class="note"><${When} at=${iso(run.at)} relative=${true} /> on <${Text} text=${run.worker || "no worker"} most=${60} /></span>
        <p><${Text} text=${run.reason || "No reason is known."} most=${400} /></p></div></div></li>`)}</ul><//>`;
}

function Slowest({ slowest }) {
  if (!slowest.length) return null;
  const most = slowest[0].p95 || 1;
  return html`<${Card} title="Slowest workspaces" aside="half of the runs, and 95 of 100, were faster">
    <div class="table-wrap" tabindex="0" role="region" aria-label="Slowest workspaces, as a table"><table class="fleet-slowest">
      <thead><tr><th scope="col">Workspace</th><th scope="col" class="num">Runs</th><th scope="col">Parts, 95 of 100</th><th scope="col" class="num">p50</th><th scope="col" class="num">p95</th></tr></thead>
      <tbody>${slowest.map((one) => {
        const at = (index) => partsOf({}, Object.fromEntries(Object.entries(one.parts).map(([name, pair]) => [name, pair[index]])));
        const words = PARTS.filter(([name]) => one.parts[name]).map(([name, title]) => `${title} ${one.parts[name].map(duration).join(" / ")}`).join("; ");
        return html`<tr key=${one.workspace}><td><${Text} text=${one.workspace} most=${60} /></td><td class="num">${number(one.runs)}</td>
          <td><${StackedBar} parts=${at(1)} total=${Math.max(most, at(1).reduce((all, part) => all + part.value, 0))} label=${plain(`p50 / p95: ${words}`)} /><span class="note">${words}</span></td>
          <td class="num">${duration(one.p50)}</td><td class="num">${duration(one.p95)}</td></tr>`;
      })}</tbody></table></div><//>`;
}

function Stranded({ stranded }) {
  if (!stranded.length) return null;
  return html`<${Card} title="Set aside" tone="warn">
    <p class="note">Events whose place in a history was taken. Nothing merges them: look at them with <code>git fetch</code>.</p>
    <ul class="rows">${stranded.map((one) => html`<li key=${one.ref}><div class="fleet-aside"><strong><${Text} text=${one.workspace} most=${60} /></strong>
      <${Badge} tone=${one.pushed ? "" : "warn"}>${one.pushed ? "on the remote" : "only on the worker"}<//>
      <p><code><${Text} text=${one.ref} most=${160} /></code></p><p class="note">by <${Text} text=${one.worker} most=${60} /></p></div></li>`)}</ul><//>`;
}

/** The view. */
export default function Fleet({ query }) {
  const minutes = WINDOWS.some(([value]) => value === query.minutes) ? query.minutes : DEFAULT;
  const { data, error, reload } = useFleet(minutes);
  const state = error ? "bad" : data ? "good" : "";
  const head = html`<${ViewHead} title="Fleet" aside=${html`
      <p class=${`stream-state ${state}`} role="status"><span class="dot"></span>${error ? "not reached" : data ? "live" : "loading"}</p>
      <${Choice} label="Shown" value=${minutes} options=${WINDOWS} onChange=${(value) => setQuery({ minutes: value === DEFAULT ? "" : value })} />`}>
    ${data ? html`<${Text} text=${data.tenant} most=${60} /> on <${Text} text=${data.remote} most=${120} />` : "What its queue and its workers do."}<//>`;
  if (!data) return html`${head}${error ? html`<${ErrorBox} error=${error} retry=${reload} />` : html`<${Skeleton} lines=${10} />`}`;
  return html`${head}
    ${error && html`<${ErrorBox} error=${error} retry=${reload} />`}
    <${Tiles} data=${data} />
    <div class="fleet-columns">
      <div class="stack"><${Depth} depth=${data.depth} />
        ${data.runs.length ? html`<${Runs} runs=${data.runs} />` : html`<${Empty} title="Nothing was submitted yet."><code>agentx fleet submit "Summarise the notes."</code> queues a run.<//>`}
        <${Slowest} slowest=${data.slowest} /></div>
      <div class="stack"><${Workers} workers=${data.workers} lease=${data.lease_s} /><${Failures} failures=${data.failures} />
        <${Stranded} stranded=${data.stranded} /><${Usage} usage=${data.usage} /></div>
    </div>`;
}
