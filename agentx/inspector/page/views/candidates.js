// Candidates: sentences that may be meant to last. One key settles each, and the next one is asked about.
import { useGet } from "../api.js";
import { useActs, useCanAct } from "../actions.js";
import { Quoted, Ticked } from "../figures.js";
import { keysOn } from "../keys.js";
import { html, useEffect, useState } from "../lib.js";
import { useFresh } from "../live.js";
import { Actor, Badge, Empty, ErrorBox, EventLink, ItemLink, Loaded, Text, ViewHead, When } from "../parts.js";
import { plural } from "../text.js";
import { kindTitle } from "../words.js";

/** What is asked about a candidate, as `agentx memory review` asks it. */
function questionOf(one) {
  if (one.same_as) return `Does it say the same as ${one.same_as.id}, so that the two are merged?`;
  return one.perhaps_ended ? "Does it still apply?" : "Does it apply from now on?";
}
const PAST = { accept: "Accepted", reject: "Rejected" };

function Evidence({ workspace, one }) {
  const evidence = one.evidence?.length ? one.evidence : one.said ? [{ seq: one.seq, at: one.at, sentence: one.said, quote: one.text }] : [];
  return evidence.map((part, index) => html`<div key=${index} class="candidate-said">
    <p><${Quoted} sentence=${part.sentence} quote=${part.quote} /></p>
    <p class="row-state"><${Actor} actor=${part.actor ?? "user"} /><${When} at=${part.at} date=${true} /><${EventLink} workspace=${workspace} seq=${part.seq} /></p>
  </div>`);
}

/** What is left of a settled candidate: what was decided, and the event that it left. */
function Settled({ workspace, one, done }) {
  return html`<div class="candidate-done" data-recorded=${done.event?.seq}>
    <${Badge} tone=${done.what === "accept" ? "good" : ""}>${PAST[done.what]}<//>
    <${ItemLink} workspace=${workspace} id=${one.id} text=${one.text} />
    ${done.event && html`<span class="note">event <${EventLink} workspace=${workspace} seq=${done.event.seq} /> by <span class="actor user"><${Text} text=${done.event.actor} most=${60} /></span></span>`}
  </div>`;
}

function Candidate({ workspace, one, done, error, busy, current, decide, onFocus, onReload, place }) {
  const canAct = useCanAct();
  if (done) return html`<li class="candidate settled" tabindex="-1" data-candidate=${one.id}>
    <${Settled} workspace=${workspace} one=${one} done=${done} /></li>`;
  return html`<li class=${`candidate ${current ? "current" : ""}`} data-candidate=${one.id} onFocusCapture=${onFocus}>
    <div class="candidate-ask" tabindex="0" data-row="true" role="group" aria-label=${`${place}. ${questionOf(one)}`}>
      <p class="candidate-meta"><span>${place}</span><code>${one.id}</code><span>${kindTitle(one.kind)}</span>
        ${one.lapses && html`<span>lapses <${When} at=${one.lapses} relative=${true} /></span>`}</p>
      <p class="candidate-text"><${Text} text=${one.text} most=${800} /></p>
      ${one.same_as && html`<p class="note"><code>${one.same_as.id}</code>: <${ItemLink} workspace=${workspace} id=${one.same_as.id} text=${one.same_as.text} /></p>`}
      ${one.file && html`<p class="note">Proposed by <code><${Text} text=${one.file} most=${200} /></code></p>`}
      ${one.steps?.length > 0 && html`<ol class="steps">${one.steps.map((step, index) => html`<li key=${index}><${Ticked} text=${step} /></li>`)}</ol>`}
      ${one.answers && html`<p class="note">It answers: <q><${Text} text=${one.answers} most=${400} /></q></p>`}
      <${Evidence} workspace=${workspace} one=${one} />
      ${one.why && html`<p class="note"><${Text} text=${one.why} most=${400} /></p>`}
    </div>
    ${canAct && html`<div class="candidate-buttons"><span class="candidate-question">${questionOf(one)}</span>
      <button class="primary" data-act="accept" disabled=${busy} onClick=${() => decide("accept")}>Accept <kbd>a</kbd></button>
      <button data-act="reject" disabled=${busy} onClick=${() => decide("reject")}>Reject <kbd>r</kbd></button>
    </div>`}
    ${error && (error.status === 409
      ? html`<div class="act-result warn" role="alert" data-conflict><p><strong>Changed meanwhile.</strong> <${Text} text=${error.message} most=${400} /> Nothing was recorded.</p>
          <button onClick=${onReload}>Show it as it is now</button></div>`
      : html`<${ErrorBox} error=${error} />`)}
  </li>`;
}

/** Focus the next candidate that is not settled: after `id`, else the first. */
function focusNext(id) {
  const all = [...document.querySelectorAll("#main [data-candidate]")];
  const at = all.findIndex((row) => row.dataset.candidate === id);
  const left = [...all.slice(at + 1), ...all.slice(0, at)].map((row) => row.querySelector("[data-row]")).filter(Boolean);
  (left[0] ?? document.querySelector("#main h1"))?.focus();
}

function List({ workspace, candidates, reload }) {
  const [done, setDone] = useState({});
  const [errors, setErrors] = useState({});
  const [seen, setSeen] = useState(candidates);
  const [focused, setFocused] = useState("");
  const acts = useActs(workspace);
  const canAct = useCanAct();
  // A settled candidate leaves the data; it stays in its place here, so that one sees what one did.
  useEffect(() => setSeen((was) => {
    const now = new Map(candidates.map((one) => [one.id, one]));
    const kept = was.filter((one) => now.has(one.id) || done[one.id]).map((one) => now.get(one.id) ?? one);
    return [...kept, ...candidates.filter((one) => !was.some((other) => other.id === one.id))];
  }), [candidates]);
  useEffect(() => {
    const result = acts.result;
    if (result?.error) setErrors((was) => ({ ...was, [result.id]: result.error }));
  }, [acts.result]);

  const open = seen.filter((one) => !done[one.id]);
  /** The candidate that the keys are about: the focused one, else the first. */
  const current = open.find((one) => one.id === focused) ?? open[0];

  const decide = async (one, what) => {
    setErrors((was) => ({ ...was, [one.id]: null }));
    const made = await acts.run({ what, id: one.id, seq: one.changed_seq });
    if (!made) return;
    setDone((was) => ({ ...was, [one.id]: made }));
    requestAnimationFrame(() => focusNext(one.id));
  };
  useEffect(() => {
    const pressed = (event) => {
      if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || !keysOn()) return;
      if (event.target.closest?.("input, textarea, select") || document.querySelector("dialog[open]")) return;
      const what = { a: "accept", r: "reject" }[event.key];
      if (!what || !current || !canAct || acts.busy) return;
      event.preventDefault();
      decide(current, what);
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  });

  return html`
    <p class="count" role="status">${open.length ? `${plural(open.length, "candidate")} to settle` : "All settled."}
      ${Object.keys(done).length > 0 && ` · ${Object.keys(done).length} settled here`}</p>
    <ul class="candidates">${seen.map((one, index) => html`<${Candidate} key=${one.id} workspace=${workspace} one=${one} done=${done[one.id]} current=${one === current} onFocus=${() => setFocused(one.id)}
      error=${errors[one.id]} busy=${acts.busy !== ""} place=${`${index + 1} of ${seen.length}`}
      decide=${(what) => decide(one, what)}
      onReload=${() => { setErrors((was) => ({ ...was, [one.id]: null })); reload(); }} />`)}</ul>`;
}

/** The view. */
export default function Candidates({ workspace }) {
  const found = useGet([workspace, "candidates"]);
  useFresh(workspace, found.reload, (row) => row.type === "Concluded");
  const [any, setAny] = useState(false);
  useEffect(() => {
    if (found.data?.candidates.length) setAny(true);
  }, [found.data]);
  return html`<${ViewHead} title="Candidates" aside=${html`<span class="keys-line"><kbd>a</kbd> accept <kbd>r</kbd> reject <kbd>j</kbd> <kbd>k</kbd> next, previous</span>`}>
      What you said that may be meant to last. Until you settle it, agents see it as not confirmed, and nothing enforces it.<//>
    <${Loaded} from=${found}>${(data) => (data.candidates.length || any
      ? html`<${List} workspace=${workspace} candidates=${data.candidates} reload=${found.reload} />`
      : html`<${Empty} title="There are no candidates to settle.">A sentence of yours that may be meant to last, such as “Maybe use tabs?”, waits here.<//>`)}<//>`;
}
