// What a person does: one request each, a dialog where words are needed, and the recorded event as the answer.
import { act, useGet } from "./api.js";
import { createContext, html, useCallback, useContext, useEffect, useRef, useState } from "./lib.js";
import { useLive } from "./live.js";
import { Badge, Dialog, ErrorBox, EventLink, Field, Loaded, Text } from "./parts.js";
import { shorten } from "./text.js";

/**
 * The acts by name. `ask`: the title of the dialog, none where one press is enough; `note`: what it does; `words`:
 * label of the reason; `text`: whether the item's text is edited; `done`: the past tense.
 */
export const ACTS = {
  accept: { label: "Accept", done: "Accepted", primary: true },
  reject: { label: "Reject", done: "Rejected" },
  pin: { label: "Pin", done: "Pinned", title: "Show it in every context" },
  unpin: { label: "Unpin", done: "Unpinned" },
  edit: { label: "Edit", done: "Edited", ask: "Edit", text: true, note: "The text changes from now on; the earlier wording stays in the history. Its compiled checks follow the new text." },
  retire: { label: "Retire", done: "Retired", ask: "Retire", words: "Reason", note: "It ends now: agents are no longer shown it, and its checks no longer apply. It stays in the history." },
  approve: { label: "Approve", done: "Approved", primary: true },
  deny: { label: "Deny", done: "Denied" },
};

const CanAct = createContext(true);

/** Whether anything can be changed here: not in a workspace that is shown read-only. */
export const useCanAct = () => useContext(CanAct);

/** Acts that a view offers, in this order. */
const ORDER = ["accept", "reject", "pin", "unpin", "edit", "retire"];

/**
 * Acts of a component: `{run, result, busy, clear}`. `run({what, id, text, reason, seq})` resolves to the answer, or to
 * null where it was refused; `result` is `{what, id, event, item}` or `{what, id, error}`.
 */
export function useActs(workspace, onDone = () => {}) {
  const [result, setResult] = useState(null);
  const [busy, setBusy] = useState("");
  const latest = useRef(onDone);
  latest.current = onDone;
  const run = useCallback(async (body) => {
    setBusy(body.what);
    try {
      const answer = await act(workspace, body);
      const made = { what: body.what, id: body.id, ...answer };
      setResult(made);
      latest.current(made);
      return made;
    } catch (error) {
      setResult({ what: body.what, id: body.id, error });
      return null;
    } finally {
      setBusy("");
    }
  }, [workspace]);
  return { run, result, busy, clear: useCallback(() => setResult(null), []) };
}

/** The answer to an act: the event that it left, or why it was refused; 409 is "changed meanwhile". */
export function ActResult({ workspace, result, onReload }) {
  if (!result) return null;
  if (result.error?.status === 409) {
    return html`<div class="act-result warn" role="alert" data-conflict>
      <p><strong>Changed meanwhile.</strong> <${Text} text=${result.error.message} most=${600} /></p>
      <p class="note">Nothing was recorded.</p>
      ${onReload && html`<button onClick=${onReload}>Show it as it is now</button>`}
    </div>`;
  }
  if (result.error) return html`<${ErrorBox} error=${result.error} />`;
  const { event } = result;
  return html`<div class="act-result good" role="status" data-recorded=${event?.seq}>
    <p><strong>${ACTS[result.what]?.done ?? "Done"}.</strong>
      ${event && html` Recorded as event <${EventLink} workspace=${workspace} seq=${event.seq} />
      by <span class="actor user"><${Text} text=${event.actor} most=${60} /></span>: <${Text} text=${event.text} most=${300} />`}</p>
  </div>`;
}

/** The buttons of an item, and the dialog of the one that was pressed. */
export function Actions({ item, may = [], acts, seq, only }) {
  const [asked, setAsked] = useState("");
  const canAct = useCanAct();
  const shown = ORDER.filter((what) => canAct && may.includes(what) && (!only || only.includes(what)));
  if (!shown.length) return null;
  const press = (what) => (ACTS[what].ask ? setAsked(what) : acts.run({ what, id: item.id, seq }));
  const send = async (words) => {
    await acts.run({ what: asked, id: item.id, seq, ...words });
    setAsked("");
  };
  return html`<div class="actions" role="group" aria-label=${`Actions on ${item.id}`}>
    ${shown.map((what) => html`<button key=${what} data-act=${what} class=${ACTS[what].primary ? "primary" : ""} title=${ACTS[what].title}
      disabled=${acts.busy !== ""} onClick=${() => press(what)}>${ACTS[what].label}${ACTS[what].ask ? "…" : ""}</button>`)}
    ${asked && html`<${ActDialog} what=${asked} item=${item} busy=${acts.busy !== ""} onSend=${send} onClose=${() => setAsked("")} />`}
  </div>`;
}

function ActDialog({ what, item, busy, onSend, onClose }) {
  const how = ACTS[what];
  const [text, setText] = useState(item.text ?? "");
  const [reason, setReason] = useState("");
  const field = useRef(null);
  useEffect(() => field.current?.focus(), []);
  const same = how.text && (text.trim() === "" || text === item.text);
  const send = (event) => {
    event.preventDefault();
    if (!same && !busy) onSend({ ...(how.text ? { text } : {}), ...(reason.trim() ? { reason: reason.trim() } : {}) });
  };
  return html`<${Dialog} title=${`${how.ask} ${shorten(item.id, 40)}`} onClose=${onClose}>
    <form class="act-form" onSubmit=${send}>
      ${!how.text && html`<blockquote class="quoted"><${Text} text=${item.text} most=${800} /></blockquote>`}
      <p class="note">${how.note}</p>
      ${how.text && html`<${Field} label="Text"><textarea ref=${field} rows="5" value=${text} maxlength="12000"
        onInput=${(event) => setText(event.currentTarget.value)}></textarea><//>`}
      ${how.words && html`<${Field} label=${`${how.words} (kept in the record; may be empty)`}><textarea ref=${field} rows="3" value=${reason} maxlength="2000"
        onInput=${(event) => setReason(event.currentTarget.value)}></textarea><//>`}
      <div class="act-buttons"><button type="button" class="quiet" onClick=${onClose}>Cancel</button>
        <button type="submit" class="primary" disabled=${same || busy}>${how.text ? "Save" : how.label}</button></div>
    </form>
  <//>`;
}

/** The command line of a call if it has one, otherwise its tool. */
const gist = (call) => String(call.arguments?.command ?? call.arguments?.path ?? "");

/** Text in pieces, some of which are marks of what cannot be seen. A diff has its lines coloured. */
function Pieces({ pieces, diff }) {
  if (!diff) return pieces.map(([text, mark], index) => (mark ? html`<span class="unseen" key=${index}>${text}</span>` : text));
  const lines = [[]];
  for (const [text, mark] of pieces) {
    text.split("\n").forEach((line, index) => {
      if (index) lines.push([]);
      lines.at(-1).push(mark ? html`<span class="unseen">${line}</span>` : line);
    });
  }
  const tone = (line) => ({ "+": "added", "-": "removed" })[typeof line[0] === "string" ? line[0][0] : ""] ?? "";
  return lines.map((line, index) => html`<span class=${tone(line)} key=${index}>${line}${"\n"}</span>`);
}

/** Characters and lines from which on the end of a text is out of sight, so that it is shown below as well. */
const LONG = 1200, LONG_LINES = 14, END = 300, END_LINES = 4;

/** The last pieces of a text, where its box cannot hold all of it. */
function endOf(pieces) {
  const whole = pieces.reduce((sum, [text]) => sum + text.length, 0);
  const lines = pieces.reduce((sum, [text]) => sum + text.split("\n").length - 1, 1);
  if (whole <= LONG && lines <= LONG_LINES) return null;
  const end = [];
  let left = END, leftLines = END_LINES;
  for (const [text, mark] of [...pieces].reverse()) {
    const some = mark ? text : text.slice(-left).split("\n").slice(-leftLines).join("\n");
    end.unshift([some, mark]);
    left -= some.length;
    leftLines -= some.split("\n").length - 1;
    if (left <= 0 || leftLines <= 1 || some !== text) break;
  }
  return end;
}

/** An argument or a file: its name and length, all of it to scroll through, and its end. */
function Asked({ one }) {
  const end = endOf(one.pieces);
  return html`<section class="asked">
    <h3><${Text} text=${one.heading} most=${400} /></h3>
    ${one.pieces.length > 0 && html`<pre class="asked-text" tabindex="0" data-asked><${Pieces} pieces=${one.pieces} diff=${one.state === "changed"} /></pre>`}
    ${end && html`<p class="note">Scroll for all of it. It ends with:</p><pre class="asked-text asked-end" data-end><${Pieces} pieces=${end} /></pre>`}
  </section>`;
}

function DecideDialog({ workspace, call, acts, onClose }) {
  const found = useGet([workspace, "approvals", call.call_id]);
  const [reason, setReason] = useState("");
  const box = useRef(null);
  useEffect(() => box.current?.focus(), []);
  return html`<${Dialog} title="Waiting for you" onClose=${onClose} wide=${true}>
    <${Loaded} from=${found}>${(view) => {
      const send = async (what) => {
        await acts.run({ what, id: view.call_id, seq: view.seq, shown: view.digest, ...(reason.trim() ? { reason: reason.trim() } : {}) });
        onClose();
      };
      const asked = [...view.arguments, ...view.files];
      return html`<div class="act-form">
        <p class="asked-question" ref=${box} tabindex="-1"><${Text} text=${view.question} most=${4000} /></p>
        ${view.notes.map((note) => html`<p class="asked-note" key=${note}><${Text} text=${note} most=${600} /></p>`)}
        <div class="asked-all">${asked.length ? asked.map((one, index) => html`<${Asked} key=${index} one=${one} />`) : html`<p class="note">No arguments.</p>`}</div>
        <p class="note">Your answer is for exactly what is shown here; if it changes meanwhile, it is refused. ${view.what} <code><${Text} text=${view.call_id} most=${80} /></code>, asked in event${" "}
          <${EventLink} workspace=${workspace} seq=${view.seq} /></p>
        <${Field} label=${view.wants_reason ? "What must be done again, and why (needed to send it back)" : "Reason (the agent is told; may be empty)"}><textarea rows="2" value=${reason} maxlength="2000"
          onInput=${(event) => setReason(event.currentTarget.value)}></textarea><//>
        <div class="act-buttons">
          <button class="quiet" onClick=${onClose}>Decide later</button>
          <button data-act="deny" disabled=${acts.busy !== "" || (view.wants_reason && !reason.trim())} onClick=${() => send("deny")}>${view.refuse}</button>
          <button data-act="approve" class="primary" disabled=${acts.busy !== ""} onClick=${() => send("approve")}>${view.accept}</button>
        </div>
      </div>`;
    }}<//>
  <//>`;
}

const DECIDES = new Set(["ToolCallRequested", "ToolCallExecuted", "ApprovalDecided", "RunStarted", "RunEnded", "Dispatched"]);

/**
 * What stands above every view: why nothing can be changed here, or each call that waits for a person, with the two
 * answers. The view is its `children`.
 */
export function Waiting({ workspace, children }) {
  const overview = useGet(workspace ? [workspace, "overview"] : null);
  const [open, setOpen] = useState(null);
  const acts = useActs(workspace, overview.reload);
  const timer = useRef(0);
  useLive(workspace, (row) => {
    if (!DECIDES.has(row.type)) return;
    clearTimeout(timer.current);
    timer.current = setTimeout(overview.reload, 250);
  });
  useEffect(() => {
    if (!acts.result || acts.result.error) return undefined;
    const over = setTimeout(acts.clear, 12_000);
    return () => clearTimeout(over);
  }, [acts.result]);
  const waiting = overview.data?.waiting ?? [];
  const reload = () => {
    acts.clear();
    overview.reload();
  };
  const readOnly = overview.data?.read_only ?? "";
  return html`<${CanAct.Provider} value=${!readOnly}>
    ${readOnly && html`<p class="read-only" role="note"><strong>Read-only.</strong> <${Text} text=${readOnly} most=${600} /></p>`}
    ${(waiting.length > 0 || acts.result) && html`<section class="waiting" aria-label="Waiting for you">
    ${waiting.slice(0, 5).map((call) => html`<div class="waiting-call" key=${call.call_id} data-waiting=${call.call_id}>
      <${Badge} tone="warn">Waiting for you<//>
      <span class="waiting-what"><strong><${Text} text=${call.what} most=${60} /></strong>${gist(call) && html` <code><${Text} text=${gist(call)} most=${120} /></code>`}</span>
      ${!readOnly && html`<button class="primary" onClick=${() => setOpen(call)}>Decide…</button>`}
    </div>`)}
    ${waiting.length > 5 && html`<p class="note">And ${waiting.length - 5} more.</p>`}
    <${ActResult} workspace=${workspace} result=${acts.result} onReload=${reload} />
    ${open && html`<${DecideDialog} key=${open.call_id} workspace=${workspace} call=${open} acts=${acts} onClose=${() => setOpen(null)} />`}
  </section>`}
    ${children}<//>`;
}
