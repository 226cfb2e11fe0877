// The buffer of a cognitive agent: how each memory in it fades, is used and grows strong again, and leaves.
import { useGet } from "../api.js";
import { Chart } from "../chart.js";
import { Meter, Sparkline } from "../figures.js";
import { html, useMemo, useState } from "../lib.js";
import { useFresh } from "../live.js";
import { Badge, Card, Empty, ItemLink, Loaded, Pager, Text, ViewHead, When } from "../parts.js";
import { plain, plural, shorten } from "../text.js";

/** Curves that the chart draws at once; more cannot be told apart. */
const DRAWN = 5;
const LIMIT = 40;
const isIn = (item) => item.held;

/** The strongest memories as one chart over the moments at which any of them was measured. */
function Curves({ agent }) {
  const drawn = useMemo(() => {
    const used = (item) => item.curve.filter(([, , again]) => again).length;
    const seen = new Set();
    // Memories of one message fade alike: one curve of each shape is enough.
    const items = [...agent.items].filter((item) => item.curve.length > 1)
      .sort((a, b) => used(b) - used(a) || b.curve.length - a.curve.length || b.activation - a.activation)
      .filter((item) => !seen.has(JSON.stringify(item.curve)) && seen.add(JSON.stringify(item.curve))).slice(0, DRAWN);
    const x = [...new Set(items.flatMap((item) => item.curve.map(([at]) => at)))].sort((a, b) => a - b);
    const series = items.map((item) => {
      const values = new Map(item.curve.map(([at, value]) => [at, value]));
      return { label: shorten(plain(item.text), 44), values: x.map((at) => values.get(at) ?? null) };
    });
    if (agent.threshold > 0) series.push({ label: "Threshold", values: x.map(() => agent.threshold), token: "--warn", dash: true });
    return items.length ? { x, series, y: [0, 1] } : null;
  }, [agent]);
  if (!drawn) return null;
  return html`<${Card} title="How memories fade" aside=${`the ${Math.min(DRAWN, agent.items.length)} most used`}>
    <${Chart} ...${drawn} height=${260} time=${false} unit="Interaction" label="Activation of memories, interaction by interaction" />
    <p class="note">Each message lets the activation fall; an answer that uses a memory raises it. Below the threshold it leaves the buffer, and stays in the history.</p><//>`;
}

function Row({ workspace, item, agent, span }) {
  const points = item.curve.map(([at, value, used], index) => [at, value, used ? "reinforced" : !item.held && index === item.curve.length - 1 ? "evicted" : ""]);
  const inside = isIn(item);
  return html`<li class=${`cognition-row ${inside ? "" : "left-buffer"}`}>
    <div class="cognition-what"><${ItemLink} workspace=${workspace} id=${item.id} text=${item.text} row=${true} />
      <p class="note"><code>${item.id}</code> entered at interaction ${item.entered}${agent.times?.[item.entered] && html`, <${When} at=${agent.times[item.entered]} date=${true} />`}${inside && item.fades_at !== null && `; unused, it fades at ${item.fades_at}`}</p></div>
    <${Sparkline} points=${points} threshold=${agent.threshold} span=${span}
      label=${`Activation of ${item.id}: ${points.map(([, value]) => value.toFixed(2)).join(", ")}`} />
    <span class="cognition-now"><strong>${Number(item.activation).toFixed(2)}</strong><${Meter} value=${item.activation} tone=${inside ? "" : "off"} /></span>
    <span>${inside ? html`<${Badge} tone="good">in the buffer<//>` : html`<${Badge}>left<//>`}</span>
  </li>`;
}

function Agent({ workspace, agent }) {
  const [offset, setOffset] = useState(0);
  const items = useMemo(() => [...agent.items].sort((a, b) => Number(isIn(b)) - Number(isIn(a)) || b.activation - a.activation), [agent]);
  const moments = items.flatMap((item) => [item.curve[0]?.[0], item.curve.at(-1)?.[0]]).filter(Number.isFinite);
  const span = [Math.min(...moments), Math.max(...moments)];
  const inside = items.filter(isIn).length;
  return html`<section class="stack" aria-label=${plain(`Session ${agent.agent}`)}>
    <div class="session-head"><h2 class="part-title">Session <${Text} text=${agent.agent} most=${80} /></h2>
      <p class="note">${plural(inside, "memory", "memories")} in the buffer, ${items.length - inside} left${agent.interactions ? ` · ${plural(agent.interactions, "interaction")}` : ""} ·
        threshold ${Number(agent.threshold).toFixed(2)} · <${When} at=${agent.at} date=${true} /></p></div>
    <${Curves} agent=${agent} />
    <ul class="rows panel">${items.slice(offset, offset + LIMIT).map((item) => html`<${Row} key=${item.id} workspace=${workspace} item=${item} agent=${agent} span=${span} />`)}</ul>
    <${Pager} offset=${offset} limit=${LIMIT} total=${items.length} onOffset=${setOffset} />
  </section>`;
}

/** The view. */
export default function Cognition({ workspace }) {
  const found = useGet([workspace, "cognition"]);
  useFresh(workspace, found.reload, (row) => row.type === "Interacted");
  return html`<${ViewHead} title="Cognition">The buffer from which a cognitive agent answers: what is in it, how it fades, and what an answer made strong again.<//>
    <${Loaded} from=${found}>${({ agents }) => (agents.length
      ? agents.map((agent) => html`<${Agent} key=${agent.agent} workspace=${workspace} agent=${agent} />`)
      : html`<${Empty} title="No cognitive agent has answered here."><code>agentx chat</code> begins a conversation; its memories appear here.<//>`)}<//>`;
}
