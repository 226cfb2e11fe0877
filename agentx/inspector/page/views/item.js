// One memory item: what it says, whether code enforces it, where it came from, how its score moved, what may be done.
import { useGet } from "../api.js";
import { ActResult, Actions, useActs } from "../actions.js";
import { Chart } from "../chart.js";
import { Quoted, Ticked } from "../figures.js";
import { html, useMemo } from "../lib.js";
import { useFresh } from "../live.js";
import { Actor, Badge, Card, Empty, EventLink, Facts, ItemLink, Loaded, Text, ViewHead, When } from "../parts.js";
import { link } from "../router.js";
import { plain, plural } from "../text.js";
import { checkedTone, kindTitle, statusTone, words } from "../words.js";

const LEVELS = {
  observe: "recorded", warn: "the agent is told", ask: "waits for you", deny: "denied", fix: "corrected, or denied",
};

const WRITTEN = { user: "Written by you.", compiled: "Compiled from its words." };

function Checks({ checked, checks }) {
  if (!checked && !checks?.length) return null;
  return html`<${Card} title="Checks" aside=${checked && html`<${Badge} tone=${checkedTone(checked)}>${checked}<//>`}>
    ${checks?.length > 0
      ? html`<ul class="rows">${checks.map((check, index) => html`<li key=${index} class="check-row">
          <div class="row"><${Text} text=${check.text} most=${600} /></div>
          <div class="row-state">${check.enforced ? html`<${Badge} tone="good">enforced<//>` : html`<${Badge}>observed<//>`}
            ${check.level && html`<span class="note">What breaks it is ${LEVELS[check.level] ?? words(check.level)}.${check.by && ` ${WRITTEN[check.by] ?? `Written by ${plain(check.by)}.`}`}</span>`}
            ${check.doubt && html`<span class="note">In doubt: <${Text} text=${check.doubt} most=${300} /></span>`}</div>
        </li>`)}</ul>`
      : html`<p class="note">Shown only: agents read it in their context, and no code checks it.${" "}
          <code>agentx memory checks --help</code> tells how a check is written.</p>`}
  <//>`;
}

function Evidence({ workspace, evidence }) {
  return html`<${Card} title="Where it came from">
    ${evidence?.length > 0
      ? html`<ul class="rows">${evidence.map((one, index) => html`<li key=${index} class="evidence">
          <div class="row"><${Quoted} sentence=${one.sentence} quote=${one.quote} /></div>
          <p class="row-state"><${Actor} actor=${one.actor} /><${When} at=${one.at} date=${true} /><${EventLink} workspace=${workspace} seq=${one.seq} /></p>
        </li>`)}</ul>`
      : html`<p class="note">It rests on no words of anybody: the engine measured it.</p>`}
  <//>`;
}

/** Score and strength at each change, and as they are now. */
function Curves({ curve, item }) {
  const drawn = useMemo(() => {
    const points = (curve ?? []).filter((one) => !Number.isNaN(Date.parse(one.at)));
    if (!points.length) return null;
    const seconds = points.map((one) => Date.parse(one.at) / 1000);
    const now = Math.max(Date.now() / 1000, seconds.at(-1));
    const of = (name) => [...points.map((one) => one[name] ?? null), points.at(-1)[name] ?? null];
    const series = [{ label: "Score", values: of("score"), step: true }, { label: "Strength", values: of("strength"), step: true }];
    const top = Math.max(10, ...series.flatMap((one) => one.values));
    return { x: [...seconds, now], series, y: [0, Math.ceil(top)] };
  }, [curve]);
  if (!drawn) return null;
  const changes = curve.filter((one, index) => index > 0 && (one.score !== curve[index - 1].score || one.strength !== curve[index - 1].strength)).length;
  if (changes === 0) {
    return html`<${Card} title="Score and strength" aside="unchanged"><p class="note">Its score is ${Number(item.score).toFixed(1)} of 10 and its strength${" "}
      ${Number(item.strength).toFixed(1)} since it was made; nothing has changed them.</p><//>`;
  }
  return html`<${Card} title="Score and strength" aside=${plural(changes, "change")}>
    <${Chart} ...${drawn} height=${190} label=${`Score and strength of ${item.id} over time`} />
    <p class="note">The score says how much it matters, from 1 to 10; the strength how slowly it fades.</p>
  <//>`;
}

/** How the item fades while it is not used: its vitality between its changes. */
function Fading({ fading, item }) {
  const drawn = useMemo(() => {
    const points = (fading ?? []).map(([at, value]) => [Date.parse(at) / 1000, value]).filter(([at]) => Number.isFinite(at));
    // The vitality of a rule is its weight: as long as no task passes it over, its score says the same.
    if (item.kind === "rule" && !item.detail?.passed_over) return null;
    if (points.length < 2 || points.every(([, value]) => value === points[0][1])) return null;
    return { x: points.map(([at]) => at), series: [{ label: "Vitality", values: points.map(([, value]) => value) }], y: [0, 1] };
  }, [fading, item]);
  if (!drawn) return null;
  return html`<${Card} title="How it fades" aside=${`${Math.round(drawn.series[0].values.at(-1) * 100)}% now`}>
    <${Chart} ...${drawn} height=${170} label=${`Vitality of ${item.id} over time, from 0 to 1`} />
    <p class="note">It falls while the item is not used, and rises with each use.</p><//>`;
}

function Links({ workspace, links }) {
  // A link that both ends keep is shown once, as this item keeps it.
  const own = new Set((links ?? []).filter((one) => one.way !== "in").map((one) => one.id));
  const shown = (links ?? []).filter((one) => one.way !== "in" || !own.has(one.id));
  if (!shown.length) return null;
  return html`<${Card} title="Links"><ul class="rows">${shown.map((one, index) => html`<li key=${index}><div class="row link-row">
    <span class="note">${one.way === "in" ? "←" : "→"} ${words(one.how)}</span>
    ${one.id ? html`<${ItemLink} workspace=${workspace} id=${one.id} text=${one.text} />` : html`<code><${Text} text=${one.text} most=${160} /></code>`}
  </div></li>`)}</ul><//>`;
}

function Life({ workspace, life }) {
  if (!life?.length) return null;
  return html`<${Card} title="Its life"><ol class="life">${life.map((one, index) => html`<li key=${index}>
    <span class="life-when"><${When} at=${one.at} date=${true} /></span>
    <span class="life-what"><${Text} text=${one.what} most=${400} /> <${EventLink} workspace=${workspace} seq=${one.seq} /> <${Actor} actor=${one.actor} />
      ${one.why && html`<span class="note life-why"><${Text} text=${one.why} most=${400} /></span>`}</span>
  </li>`)}</ol><//>`;
}

const DETAIL_WORDS = {
  modality: "demand", duration: "lasts", violations: "broken", passed_over: "passed over in a row", arose: "came up", enforced_by: "enforced by",
  idea: "idea", reason: "because", runner: "runner", check: "check", path: "file", priority: "priority", failures: "failed", ended: "ended",
  command: "command", works: "works", sort: "sort", valid_from: "true from", valid_to: "true until", needs_approval: "needs approval", version: "version",
};
const TIMES = new Set(["violations", "passed_over", "arose", "failures"]);

/** The item's fields as pairs: those of every kind, then those of its own. */
function pairsOf(data) {
  const { item } = data;
  const shown = (value) => html`<${Text} text=${value} most=${300} />`;
  const scope = [item.scope?.topic, ...(item.scope?.paths ?? []), ...(item.scope?.tools ?? [])].filter(Boolean).join(", ");
  const detail = Object.entries(item.detail ?? {})
    .filter(([name, value]) => DETAIL_WORDS[name] && value !== "" && value !== null && value !== false && value !== 0 && typeof value !== "object")
    .map(([name, value]) => [DETAIL_WORDS[name], TIMES.has(name) ? plural(value, "time") : shown(words(value))]);
  return [
    ["Trust", item.trust && words(item.trust)],
    ["Score", item.score !== undefined && Number(item.score).toFixed(2)],
    ["Strength", item.strength !== undefined && Number(item.strength).toFixed(2)],
    ["Vitality now", item.vitality !== undefined && `${Math.round(item.vitality * 100)}%`],
    ["Ends by", data.ended_by && shown(data.ended_by)],
    ["Scope", scope && shown(scope)],
    ["Until", item.until && shown(item.until)],
    ["Worded by", item.worded_by && shown(item.worded_by)],
    ["Why", item.reason && shown(item.reason)],
    ["Created", item.created_at && html`<${When} at=${item.created_at} date=${true} />`],
    ["Changed", item.changed_seq !== item.created_seq && item.changed_at && html`<${When} at=${item.changed_at} date=${true} />`],
    ["Last used", item.used_at && html`<${When} at=${item.used_at} date=${true} />`],
    ...detail.map(([name, value]) => [name.charAt(0).toUpperCase() + name.slice(1), value]),
  ];
}

function Whole({ workspace, data, acts, reload }) {
  const { item } = data;
  const steps = item.detail?.steps;
  return html`<${ViewHead} title=${html`<span class="item-title"><${Text} text=${item.text} most=${2000} /></span>`}
      aside=${html`<${Actions} item=${item} may=${data.may} acts=${acts} seq=${data.seq ?? item.changed_seq} />`}>
      <span class="badges"><code>${item.id}</code> <span>${kindTitle(item.kind)}</span>
        <${Badge} tone=${statusTone(item.status)}>${words(item.ended || item.status)}<//>
        ${data.checked && html` <${Badge} tone=${checkedTone(data.checked)}>${data.checked}<//>`}
        ${item.pinned && html` <${Badge} tone="accent">pinned<//>`}</span>
    <//>
    <${ActResult} workspace=${workspace} result=${acts.result} onReload=${reload} />
    <div class="columns wide-left">
      <div class="stack">
        ${data.answers?.quote && html`<${Card} title="What it answers"><p><${Quoted} sentence=${data.answers.sentence} quote=${data.answers.quote} /></p><p class="row-state"><${Actor} actor=${data.answers.actor} /><${EventLink} workspace=${workspace} seq=${data.answers.seq} /></p><//>`}
        <${Evidence} workspace=${workspace} evidence=${data.evidence} />
        ${data.perhaps_ended_by?.length > 0 && html`<${Card} title="Perhaps ended" tone="warn">${data.perhaps_ended_by.map((one) => html`<p key=${one.seq}>
          <${Quoted} sentence=${one.sentence} quote=${one.quote} /> <${EventLink} workspace=${workspace} seq=${one.seq} /></p>`)}<//>`}
        ${steps?.length > 0 && html`<${Card} title="Steps"><ol class="steps">${steps.map((step, index) => html`<li key=${index}><${Ticked} text=${step} /></li>`)}</ol><//>`}
        <${Checks} checked=${data.checked} checks=${data.checks} />
        <${Links} workspace=${workspace} links=${data.links} />
        <${Life} workspace=${workspace} life=${data.life} />
      </div>
      <div class="stack">
        <${Curves} curve=${data.curve} item=${item} />
        <${Fading} fading=${data.fading} item=${item} />
        <${Card} title="What it is"><${Facts} pairs=${pairsOf(data)} /><//>
      </div>
    </div>`;
}

/** One item by its id. */
export function MemoryItem({ workspace, id }) {
  const found = useGet([workspace, "memory", id]);
  const acts = useActs(workspace, found.reload);
  useFresh(workspace, found.reload, (row) => row.type === "Concluded");
  const reload = () => {
    acts.clear();
    found.reload();
  };
  if (found.error?.status === 404) {
    return html`<${ViewHead} title=${id} /><${Empty} title="There is no such memory item.">
      <a href=${link(workspace, "memory")}>All of memory</a><//>`;
  }
  return html`<p class="back"><a href=${link(workspace, "memory")}>← Memory</a></p>
    <${Loaded} from=${found}>${(data) => html`<${Whole} workspace=${workspace} data=${data} acts=${acts} reload=${reload} />`}<//>`;
}
