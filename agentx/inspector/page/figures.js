// Small figures drawn as SVG by elements: meters, bars, sparklines. Each says its values in words beside or within.
import { html } from "./lib.js";
import { plain, visible } from "./text.js";

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

/** A share from 0 to 1 as a bar; `tone` as of a badge. The words stand beside it, so it is hidden from readers. */
export function Meter({ value, tone = "" }) {
  return html`<svg class=${`meter ${tone}`} viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
    <rect class="rest" width="100" height="6" /><rect class="fill" width=${clamp(Number(value) || 0, 0, 1) * 100} height="6" />
  </svg>`;
}

/** A share with its confidence interval: a line from `low` to `high`, and a dot at `mean`. */
export function Interval({ low, mean, high, label, tone = "" }) {
  const x = (value) => 6 + clamp(value, 0, 1) * 188;
  return html`<svg class=${`interval ${tone}`} viewBox="0 0 200 16" preserveAspectRatio="xMinYMid meet" role="img" aria-label=${plain(label)}>
    <line class="rail" x1="6" x2="194" y1="8" y2="8" /><line class="span" x1=${x(low)} x2=${x(high)} y1="8" y2="8" />
    <circle class="dot" cx=${x(mean)} cy="8" r="5" />
  </svg>`;
}

/** How long something took as a share of the longest; `from` sets it behind what came before. */
export function DurationBar({ from = 0, share, tone = "" }) {
  const start = clamp(from, 0, 1) * 100;
  return html`<svg class=${`duration ${tone}`} viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
    <rect class="rest" width="100" height="8" /><rect class="fill" x=${start} width=${Math.max(0.8, clamp(share, 0, 1 - start / 100) * 100)} height="8" />
  </svg>`;
}

/** A curve of points [x, y, note] with a threshold; `span` is [first x, last x], so that curves compare. */
export function Sparkline({ points, threshold, span, label }) {
  const [left, right] = span;
  const x = (value) => (right > left ? ((value - left) / (right - left)) * 236 : 118) + 2;
  const y = (value) => 30 - clamp(value, 0, 1) * 28;
  const line = points.map(([at, value], index) => `${index ? "L" : "M"}${x(at).toFixed(1)},${y(value).toFixed(1)}`).join("");
  const end = points.at(-1);
  return html`<svg class="spark" viewBox="0 0 240 32" role="img" aria-label=${plain(label)}>
    ${threshold !== null && threshold !== undefined && html`<line class="threshold" x1="2" x2="238" y1=${y(threshold)} y2=${y(threshold)} />`}
    ${points.length > 1 && html`<path d=${line} />`}
    ${points.filter(([, , note]) => note === "reinforced").map(([at, value]) => html`<circle key=${at} class="used" cx=${x(at)} cy=${y(value)} r="2.6" />`)}
    ${end && (end[2] === "evicted"
      ? html`<path class="left" d=${`M${x(end[0]) - 3},${y(end[1]) - 3}l6,6m0,-6l-6,6`} />`
      : html`<circle class="end" cx=${x(end[0])} cy=${y(end[1])} r="2.6" />`)}
  </svg>`;
}

/** Text in which what stands between backticks is code. */
export function Ticked({ text }) {
  const parts = String(text ?? "").split(/`([^`]+)`/);
  return html`<span class="text">${parts.map((part, index) => (index % 2 ? html`<code key=${index}>${visible(part)}</code>` : visible(part)))}</span>`;
}

/** A sentence with the words that matter marked; what is not found in it is quoted before it. */
export function Quoted({ sentence, quote }) {
  const whole = String(sentence ?? "");
  const words = String(quote ?? "");
  const at = words ? whole.indexOf(words) : -1;
  if (!whole || at < 0) return html`<q class="text"><mark>${visible(words || whole)}</mark></q>`;
  return html`<q class="text">${visible(whole.slice(0, at))}<mark>${visible(words)}</mark>${visible(whole.slice(at + words.length))}</q>`;
}
