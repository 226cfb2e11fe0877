// Pipelines as a live graph: what each step waits for, what became of it, and which steps are out of date, and why.
import { useGet } from "../api.js";
import { arrange, curve } from "../layout.js";
import { html, useMemo, useState } from "../lib.js";
import { useFresh } from "../live.js";
import { Badge, Card, Empty, ErrorBox, EventLink, Facts, FileLink, Loaded, Text, ViewHead, When } from "../parts.js";
import { link, setQuery } from "../router.js";
import { number, plain, plural, shorten } from "../text.js";
import { outcomeTone, outcomeWords, words } from "../words.js";

/** What a step's status is called, and the sign in its cell. */
const MARKS = {
  waiting: ["waiting", "·"], running: ["running", "▶"], proved: ["proved", "✓"], not_passed: ["proved, not passed", "!"],
  again: ["to be done again", "↻"], asks: ["waits for you", "?"], failed: ["failed", "✕"], "left-out": ["left out", "–"],
};
const TONES = { proved: "good", failed: "bad", asks: "warn", not_passed: "warn", again: "warn", running: "accent" };
/** The statuses, the most urgent first: a stage is drawn as its most urgent step. */
const URGENT = ["failed", "asks", "not_passed", "running", "again", "waiting", "proved", "left-out"];
const STALE = { stale: "out of date", after: "after a step that is out of date", changed: "its file was changed since" };
const SHORT = { stale: "out of date", after: "after such", changed: "changed" };
const stepStatus = (step) => (MARKS[step.status] ? step.status : "waiting");
const stageOf = (step) => String(step.id).replace(/\[.*$/s, "");

/** Steps as the view draws them: a need of a loop is one of all its steps. */
function read(data) {
  const loops = new Map();
  for (const step of data.steps) if (step.loop) loops.set(step.loop, [...(loops.get(step.loop) ?? []), step.id]);
  return data.steps.map((step) => ({
    ...step,
    needs: (step.needs ?? []).flatMap((need) => loops.get(need) ?? [need]),
  }));
}

const STAGE_WIDTH = 244;
const STEP_WIDTH = 216;
const CELL = 20;
const CELLS_A_ROW = 9;
const MOST_CELLS = 54;
/** Room for the graph and its chosen stage side by side. */
const ROOM = matchMedia("(min-width: 1101px)");
/** Above this a pipeline opens by stages. */
const FEW_STEPS = 12;

let pen = null;
/** Cut `text` to `room` pixels in a font of SVG text. */
function fit(text, room, font) {
  pen ??= document.createElement("canvas").getContext("2d");
  pen.font = font;
  const whole = plain(text);
  if (pen.measureText(whole).width <= room) return whole;
  let keep = whole.length;
  while (keep > 1 && pen.measureText(`${whole.slice(0, keep)}…`).width > room) keep -= 1;
  return `${whole.slice(0, keep)}…`;
}

/** Steps by stage, in the order in which they come; a stage is as urgent as its most urgent step. */
function stagesOf(steps) {
  const stages = new Map();
  for (const step of steps) {
    const id = stageOf(step);
    if (!stages.has(id)) stages.set(id, { id, steps: [], role: step.role, by: step.by, loop: step.loop });
    stages.get(id).steps.push(step);
  }
  for (const stage of stages.values()) {
    const found = new Set(stage.steps.map(stepStatus));
    stage.status = URGENT.find((status) => found.has(status)) ?? "waiting";
    stage.stale = stage.steps.filter((step) => step.stale === "stale" || step.stale === "changed").length;
    stage.after = stage.steps.filter((step) => step.stale === "after").length;
    stage.proved = stage.steps.filter((step) => step.status === "proved" || step.status === "not_passed").length;
  }
  return [...stages.values()];
}

/** Nodes and edges of a pipeline, by stage or by step. */
function graphOf(steps, by) {
  const known = new Map(steps.map((step) => [step.id, step]));
  const edges = new Map();
  for (const step of steps) {
    for (const need of step.needs ?? []) {
      const other = known.get(need);
      if (!other) continue;
      const [from, to] = by === "stage" ? [stageOf(other), stageOf(step)] : [other.id, step.id];
      if (from !== to) edges.set(`${from}\u0000${to}`, [from, to]);
    }
  }
  if (by !== "stage") return { nodes: steps.map((step) => ({ id: step.id, width: STEP_WIDTH, height: 46, step })), edges: [...edges.values()] };
  const nodes = stagesOf(steps).map((stage) => {
    const rows = stage.steps.length > 1 ? Math.ceil(Math.min(stage.steps.length, MOST_CELLS) / CELLS_A_ROW) : 0;
    return { id: stage.id, width: STAGE_WIDTH, height: 60 + rows * (CELL + 4) + (rows ? 6 : 0) + (stage.stale + stage.after > 0 ? 20 : 0), stage };
  });
  return { nodes, edges: [...edges.values()] };
}

function Cells({ steps, x, y }) {
  return steps.slice(0, MOST_CELLS).map((step, index) => {
    const left = x + (index % CELLS_A_ROW) * (CELL + 3);
    const top = y + Math.floor(index / CELLS_A_ROW) * (CELL + 4);
    const status = stepStatus(step);
    const last = index === MOST_CELLS - 1 && steps.length > MOST_CELLS;
    return html`<g key=${step.id} class=${`cell ${TONES[status] ?? ""} ${step.stale ? `is-${step.stale}` : ""}`}>
      <title>${plain(`${step.id}: ${MARKS[status][0]}${step.stale ? `, ${STALE[step.stale]}` : ""}`)}</title>
      <rect x=${left} y=${top} width=${CELL} height=${CELL} rx="4" /><text x=${left + CELL / 2} y=${top + 14} text-anchor="middle">${last ? "…" : step.stale === "stale" ? "↻" : MARKS[status][1]}</text></g>`;
  });
}

const staleWords = (stage) => [
  stage.stale && `${number(stage.stale)} out of date`, stage.after && `${number(stage.after)} after such`,
].filter(Boolean).join(", ");

function StageBox({ box, stage, chosen, onChoose }) {
  const stale = stage.stale + stage.after > 0;
  const count = `${stage.proved} / ${stage.steps.length}`;
  const by = [stage.role, stage.by && stage.by !== "model" ? stage.by : ""].filter(Boolean).join(" · ");
  const told = `${stage.id}: ${by}. ${stage.proved} of ${plural(stage.steps.length, "step")} proved.${stale ? ` ${staleWords(stage)}.` : ""}${stage.status !== "proved" ? ` ${MARKS[stage.status][0]}.` : ""}`;
  const many = stage.steps.length > 1;
  return html`<${Box} box=${box} id=${stage.id} told=${told} chosen=${chosen} onChoose=${onChoose} status=${stage.status}
      stale=${stage.stale ? "stale" : stage.after ? "after" : ""}>
    <text class="name" x=${box.x + 18} y=${box.y + 24}>${fit(stage.id, STAGE_WIDTH - 96, "650 14px system-ui, sans-serif")}</text>
    <text class="soft" x=${box.x + box.width - 14} y=${box.y + 24} text-anchor="end">${many ? count : MARKS[stage.status][0]}</text>
    <text class="soft" x=${box.x + 18} y=${box.y + 43}>${fit(by, STAGE_WIDTH - 34, "12px system-ui, sans-serif")}</text>
    ${many && html`<${Cells} steps=${stage.steps} x=${box.x + 18} y=${box.y + 56} />`}
    ${stale && html`<text class="stale" x=${box.x + 18} y=${box.y + box.height - 11}>${fit(`↻ ${staleWords(stage)}`, STAGE_WIDTH - 34, "600 12px system-ui, sans-serif")}</text>`}
  <//>`;
}

function StepBox({ box, step, chosen, onChoose }) {
  const status = stepStatus(step);
  const told = `${step.id}: ${MARKS[status][0]}${step.stale ? `, ${STALE[step.stale]}` : ""}`;
  return html`<${Box} box=${box} id=${step.id} told=${told} chosen=${chosen} onChoose=${onChoose} status=${status} stale=${step.stale}>
    <text class="name small" x=${box.x + 18} y=${box.y + 20}>${fit(stageOf(step), 84, "600 13px system-ui, sans-serif")}</text>
    <text class=${step.stale ? "stale" : "soft"} x=${box.x + box.width - 12} y=${box.y + 20} text-anchor="end">${fit(step.stale ? `↻ ${SHORT[step.stale]}` : MARKS[status][0], 106, "600 12px system-ui, sans-serif")}</text>
    <text class="soft" x=${box.x + 18} y=${box.y + 36}>${fit(step.item || step.role, STEP_WIDTH - 32, "12px system-ui, sans-serif")}</text>
  <//>`;
}

/** A box that is chosen with the mouse, Enter or the space bar. */
function Box({ box, id, told, chosen, onChoose, status, stale, children }) {
  const keys = (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    onChoose(id);
  };
  return html`<g class=${`node ${TONES[status] ?? ""} ${stale ? `is-${stale}` : ""}`} role="button" tabindex="0" data-row="true" data-node=${id}
      data-stale=${stale || undefined} aria-pressed=${chosen ? "true" : "false"} aria-label=${plain(told)} onClick=${() => onChoose(id)} onKeyDown=${keys}>
    <rect class="box" x=${box.x} y=${box.y} width=${box.width} height=${box.height} rx="9" />
    <rect class="strip" x=${box.x + 6} y=${box.y + 9} width="4" height=${box.height - 18} rx="2" />${children}</g>`;
}

/** Frames around the stages of each loop, where no other stage stands between them. */
function framesOf(nodes, placed, loops) {
  return loops.map((loop) => {
    const inside = nodes.filter((node) => node.stage?.loop && loopName(node.stage.loop) === loop.name).map((node) => placed[node.id]);
    if (!inside.length) return null;
    const left = Math.min(...inside.map((box) => box.x)) - 14;
    const right = Math.max(...inside.map((box) => box.x + box.width)) + 40;
    const top = Math.min(...inside.map((box) => box.y)) - 28;
    const foot = Math.max(...inside.map((box) => box.y + box.height)) + 14;
    const crossed = nodes.some((node) => {
      const box = placed[node.id];
      return !inside.includes(box) && box.x < right && box.x + box.width > left && box.y < foot && box.y + box.height > top;
    });
    return crossed ? null : { loop, left, right, top, foot };
  }).filter(Boolean);
}
/** The loops of a pipeline, named as its file names them. */
const loopsOf = (data) => [...new Set(data.steps.filter((step) => step.loop).map((step) => loopName(step.loop)))].map((name) => ({ name, ...(data.loops ?? []).find((loop) => loop.name === name) }));
const loopName = (loop) => String(loop).replace(/\[.*$/s, "");

function Graph({ data, by, chosen, onChoose }) {
  const { nodes, edges } = useMemo(() => graphOf(data.steps, by), [data, by]);
  const laid = useMemo(() => arrange(nodes, edges), [nodes, edges]);
  const frames = by === "stage" ? framesOf(nodes, laid.nodes, loopsOf(data)) : [];
  const pad = 32;
  const side = laid.lines.some((line) => line.back) || frames.length ? 48 : pad;
  const [wide, high] = [laid.width + pad + side, laid.height + 2 * pad];
  return html`<div class="graph" tabindex="0" role="region" aria-label="Graph of the pipeline; the table below it says the same">
    <svg width=${wide} height=${high} viewBox=${`${-pad} ${-pad} ${wide} ${high}`} aria-label=${plain(`Pipeline ${data.title || data.name}`)} role="group">
      <defs><marker id="tip" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0,0.6L7,4L0,7.4z" /></marker></defs>
      ${frames.map(({ loop, left, right, top, foot }) => html`<g key=${loop.name} class="loop"><rect x=${left} y=${top} width=${right - left} height=${foot - top} rx="14" />
        <text x=${left + 14} y=${top + 19}>${fit(`↻ ${loop.name}${loop.at_most ? ` · ≤ ${loop.at_most}` : ""}`, STAGE_WIDTH / 2 - 12, "600 12px system-ui, sans-serif")}<title>${plain(`${loop.name}: a loop of at most ${loop.at_most} rounds`)}</title></text></g>`)}
      ${laid.lines.map((line) => html`<path key=${`${line.from}>${line.to}`} class=${`edge ${line.back ? "back" : ""}`} d=${curve(line)} marker-end="url(#tip)" />`)}
      ${nodes.map((node) => (node.stage
        ? html`<${StageBox} key=${node.id} box=${laid.nodes[node.id]} stage=${node.stage} chosen=${chosen === node.id} onChoose=${onChoose} />`
        : html`<${StepBox} key=${node.id} box=${laid.nodes[node.id]} step=${node.step} chosen=${chosen === node.id} onChoose=${onChoose} />`))}
    </svg></div>`;
}

function Step({ workspace, step }) {
  const status = stepStatus(step);
  return html`<li class="step-detail" data-step=${step.id}>
    <p class="step-head"><code><${Text} text=${step.id} most=${160} /></code>
      <span class="badges"><${Badge} tone=${TONES[status] ?? ""}>${MARKS[status][0]}<//>
      ${step.stale && html`<${Badge} tone="warn">${STALE[step.stale] ?? words(step.stale)}<//>`}
      ${step.round > 1 && html`<${Badge}>round ${step.round}<//>`}</span></p>
    ${step.why && html`<p class="step-why"><${Text} text=${step.why} most=${500} /> ${step.why_seq > 0 && html`<${EventLink} workspace=${workspace} seq=${step.why_seq} />`}</p>`}
    ${step.reason && html`<p class="note"><${Text} text=${step.reason} most=${500} /></p>`}
    ${step.artifacts?.length > 0 && html`<p class="step-files">${step.artifacts.map((path) => html`<${FileLink} key=${path} workspace=${workspace} path=${path} />`)}</p>`}
    ${step.at && html`<p class="note"><${When} at=${step.at} date=${true} /></p>`}
  </li>`;
}

function Chosen({ workspace, data, by, chosen, onClose }) {
  const steps = data.steps.filter((step) => (by === "stage" ? stageOf(step) === chosen : step.id === chosen));
  if (!steps.length) return null;
  const one = steps[0];
  const order = (step) => (step.stale === "stale" ? 0 : step.stale === "changed" ? 1 : ["failed", "asks"].includes(step.status) ? 2 : step.stale === "after" ? 3 : 4);
  const needs = [...new Set(steps.flatMap((step) => step.needs ?? []).map((need) => (by === "stage" ? need.replace(/\[.*$/s, "") : need)))].filter((need) => need !== chosen);
  return html`<${Card} title=${shorten(plain(chosen), 60)} aside=${html`<button class="quiet" onClick=${onClose}>Close</button>`}>
    <div class="chosen-facts"><${Facts} pairs=${[
      ["Role", html`<${Text} text=${one.role} most=${100} />`], ["Played by", one.by], ["Loop", one.loop && html`<${Text} text=${loopName(one.loop)} most=${60} />`],
      ["Waits for", needs.length > 0 && html`<${Text} text=${needs.slice(0, 8).join(", ")} most=${200} />`],
    ]} /></div>
    <ul class="rows">${[...steps].sort((a, b) => order(a) - order(b)).slice(0, 200).map((step) => html`<${Step} key=${step.id} workspace=${workspace} step=${step} />`)}</ul>
  <//>`;
}

/** The graph as a table. */
function Table({ steps }) {
  return html`<details class="graph-text"><summary>As a table</summary><div class="table-wrap panel" tabindex="0" role="region" aria-label="Steps"><table>
    <thead><tr><th scope="col">Step</th><th scope="col">Status</th><th scope="col">Out of date</th><th scope="col">Waits for</th><th scope="col">Files</th></tr></thead>
    <tbody>${steps.slice(0, 1000).map((step) => html`<tr key=${step.id}><td><code><${Text} text=${step.id} most=${160} /></code></td><td>${MARKS[stepStatus(step)][0]}</td>
      <td>${step.stale ? html`<${Text} text=${`${STALE[step.stale] ?? step.stale}${step.why ? `: ${step.why}` : ""}`} most=${400} />` : "no"}</td>
      <td><${Text} text=${(step.needs ?? []).join(", ")} most=${200} /></td><td><${Text} text=${(step.artifacts ?? []).join(", ")} most=${200} /></td></tr>`)}</tbody>
  </table></div></details>`;
}

const Legend = () => html`<p class="graph-legend">${["proved", "running", "asks", "failed", "again", "waiting"].map((status) => html`<span key=${status}>
  <svg class=${`cell ${TONES[status] ?? ""}`} width="18" height="18" viewBox="0 0 18 18" aria-hidden="true"><rect x="1" y="1" width="16" height="16" rx="4" /><text x="9" y="13" text-anchor="middle">${MARKS[status][1]}</text></svg> ${MARKS[status][0]}</span>`)}
  <span><svg class="cell is-stale" width="18" height="18" viewBox="0 0 18 18" aria-hidden="true"><rect x="1" y="1" width="16" height="16" rx="4" /><text x="9" y="13" text-anchor="middle">↻</text></svg> out of date</span></p>`;

function Pipeline({ workspace, name, query, others }) {
  const found = useGet([workspace, "pipelines", name]);
  const state = useFresh(workspace, found.reload);
  const [picked, setChosen] = useState(null);
  if (found.error) {
    return html`<${ViewHead} title=${html`<${Text} text=${name} most=${200} />`} aside=${others} />
      <${ErrorBox} error=${found.error} retry=${found.reload} />`;
  }
  return html`<${Loaded} from=${found} lines=${10}>${(given) => {
    const data = { ...given, steps: read(given) };
    const by = query.by === "step" || query.by === "stage" ? query.by : data.steps.length > FEW_STEPS ? "stage" : "step";
    // Where there is room, what is out of date is open from the start.
    const first = data.steps.find((step) => step.stale === "stale" || step.stale === "changed");
    const chosen = picked ?? (first && ROOM.matches ? (by === "stage" ? stageOf(first) : first.id) : "");
    const stale = data.steps.filter((step) => step.stale === "stale" || step.stale === "changed");
    const after = data.steps.filter((step) => step.stale === "after").length;
    const proved = data.steps.filter((step) => step.status === "proved" || step.status === "not_passed").length;
    return html`<${ViewHead} title=${html`<${Text} text=${data.title || data.name} most=${200} />`} aside=${html`${others}
        <div class="switch" role="group" aria-label="Draw by">${["stage", "step"].map((one) => html`<button key=${one} aria-pressed=${by === one ? "true" : "false"}
          onClick=${() => { setChosen(null); setQuery({ by: one }); }}>${one === "stage" ? "Stages" : "Steps"}</button>`)}</div>`}>
        <span class="badges"><code><${Text} text=${data.name} most=${60} /></code> <${Badge} tone=${outcomeTone(data.status)}>${outcomeWords(data.status) || "not started"}<//>
          <span>${proved} of ${plural(data.steps.length, "step")} proved</span>
          ${data.dispatches > 0 && html`<span>${plural(data.dispatches, "dispatch", "dispatches")}</span>`}
          ${data.tokens > 0 && html`<span>${number(data.tokens)} tokens</span>`}${data.cost_usd > 0 && html`<span>$${data.cost_usd.toFixed(4)}</span>`}
          ${state === "live" && html`<span class="live"><span aria-hidden="true">●</span> live</span>`}</span><//>
      ${stale.length > 0 && html`<div class="act-result warn" role="status" data-stale-summary="true">
        <p><strong>${plural(stale.length, "step")} out of date</strong>${after > 0 && `, ${number(after)} after such steps that may come out the same`}.
          ${stale[0].why && html` <${Text} text=${stale[0].why} most=${300} />`} ${stale[0].why_seq > 0 && html`<${EventLink} workspace=${workspace} seq=${stale[0].why_seq} />`}</p>
        <p class="note"><code>agentx pipeline redo --stale</code> marks them to be done again.</p></div>`}
      ${data.reason && html`<p class="note pipeline-reason"><${Text} text=${data.reason} most=${1000} /></p>`}
      <div class=${`graph-and-steps ${chosen ? "open" : ""}`}>
        <div class="panel"><${Graph} data=${data} by=${by} chosen=${chosen} onChoose=${(id) => setChosen(id === chosen ? "" : id)} /><${Legend} /></div>
        ${chosen && html`<${Chosen} workspace=${workspace} data=${data} by=${by} chosen=${chosen} onClose=${() => setChosen("")} />`}
      </div>
      <${Table} steps=${data.steps} />
      ${data.incidents?.length > 0 && html`<div class="incidents"><${Card} title="To look at"><ul class="rows">${data.incidents.map((one, index) => html`<li key=${index}><div class="row"><${Text} text=${one} most=${600} /></div></li>`)}</ul><//></div>`}`;
  }}<//>`;
}

/** The view: the pipeline of the address, else the one that was started last. */
export default function Pipelines({ workspace, arg, query }) {
  const list = useGet([workspace, "pipelines"]);
  useFresh(workspace, list.reload, (row) => row.type === "PipelineStarted");
  return html`<${Loaded} from=${list}>${({ pipelines }) => {
    const latest = [...pipelines].sort((a, b) => String(a.started_at ?? "").localeCompare(String(b.started_at ?? ""))).at(-1);
    const name = arg ?? latest?.name;
    if (!name) {
      return html`<${ViewHead} title="Pipelines">Work of many agents who share files, as one file describes it.<//>
        <${Empty} title="No pipeline was started here."><code>agentx pipeline new notes</code> writes one, <code>agentx pipeline run notes.yaml</code> runs it; its graph appears here.<//>`;
    }
    const others = pipelines.length > 1 && html`<select aria-label="Pipeline" value=${name} onChange=${(event) => { location.hash = link(workspace, "pipelines", event.currentTarget.value); }}>
      ${pipelines.map((one) => html`<option key=${one.name} value=${one.name} selected=${one.name === name}>${plain(shorten(one.title || one.name, 60))}</option>`)}</select>`;
    return html`<${Pipeline} key=${name} workspace=${workspace} name=${name} query=${query} others=${others} />`;
  }}<//>`;
}
