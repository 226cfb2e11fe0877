// Curves by uPlot. Every chart has a text form: a table of its values, closed until asked for.
import { html, useEffect, useRef, useState } from "./lib.js";
import { plain } from "./text.js";
import uPlot from "./vendor/uplot/uPlot.esm.js";

/** Read a colour token as the browser resolves it now (canvas knows no CSS variables). */
export function colour(name) {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

/** Series take these tokens in turn, and dashes where the colours come round again. */
const TOKENS = ["--accent", "--ink-2", "--c1", "--c6", "--c4"];

/**
 * Curves over time. `x`: seconds since 1970, or with `time` off any numbers, counted in `unit`; `series`: [{label, values, step, token, dash}] with one value (or null) per x;
 * `label` says what the chart shows; `y`: [low, high] or nothing.
 */
export function Chart({ x, series, label, y, height = 220, digits = 2, time = true, unit = "Moment" }) {
  const place = useRef(null);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const again = () => setTurn((was) => was + 1);
    const system = matchMedia("(prefers-color-scheme: dark)");
    system.addEventListener("change", again);
    window.addEventListener("themechange", again);
    return () => {
      system.removeEventListener("change", again);
      window.removeEventListener("themechange", again);
    };
  }, []);
  useEffect(() => {
    const box = place.current;
    const axis = { stroke: colour("--ink-2"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
    const stepped = uPlot.paths.stepped({ align: 1 });
    const chart = new uPlot({
      width: Math.max(240, box.clientWidth), height,
      legend: { show: series.length > 1 },
      cursor: { points: { size: 6 } },
      scales: { x: { time }, ...(y ? { y: { range: () => y } } : {}) },
      axes: [axis, { ...axis, size: 48 }],
      series: [{ label: unit, value: (_, at) => (at === null ? "" : time ? new Date(at * 1000).toLocaleString("en-GB") : at) }, ...series.map((one, index) => ({
        label: plain(one.label), stroke: colour(one.token ?? TOKENS[index % TOKENS.length]), width: 2,
        dash: one.dash || index >= TOKENS.length ? [6, 4] : undefined, spanGaps: true, points: { show: x.length < 40 && !one.dash },
        value: (_, value) => (value === null || value === undefined ? "" : value.toFixed(digits)),
        ...(one.step ? { paths: stepped } : {}),
      }))],
    }, [x, ...series.map((one) => one.values)], box);
    const sized = new ResizeObserver(() => chart.setSize({ width: Math.max(240, box.clientWidth), height }));
    sized.observe(box);
    return () => {
      sized.disconnect();
      chart.destroy();
    };
  }, [x, series, turn, height]);
  return html`<figure class="chart">
    <div ref=${place} role="img" aria-label=${plain(label)}></div>
    <details><summary>As a table</summary><div class="table-wrap" tabindex="0" role="region" aria-label=${plain(label)}><table>
      <thead><tr><th scope="col">${unit}</th>${series.map((one) => html`<th scope="col" class="num" key=${one.label}>${plain(one.label)}</th>`)}</tr></thead>
      <tbody>${x.slice(0, 500).map((at, index) => html`<tr key=${index}><td>${time ? new Date(at * 1000).toLocaleString("en-GB") : at}</td>
        ${series.map((one) => html`<td class="num" key=${one.label}>${one.values[index] === null || one.values[index] === undefined ? "–" : one.values[index].toFixed(digits)}</td>`)}</tr>`)}</tbody>
    </table></div></details>
  </figure>`;
}
