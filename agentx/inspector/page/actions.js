// What a person does: one request each, a dialog where words are needed, and the recorded event as the answer.
import { act, useGet } from "./api.js";
import { createContext, html, useCallback, useContext, useEffect, useRef, useState } from "./lib.js";
import { useLive } from "./live.js";
import { Badge, Dialog, ErrorBox, EventLink, Field, Text } from "./parts.js";
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

/** The facts of a call as text: its tool and its arguments, one a line. */
function argumentsOf(call) {
  const given = call.arguments && typeof call.arguments === "object" ? Object.entries(call.arguments) : [];
  return given.map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value, null, 2)}`).join("\n");
}

/** The command line of a call if it has one, otherwise its tool. */
const gist = (call) => String(call.arguments?.command ?? call.arguments?.path ?? "");

function DecideDialog({ workspace, call, acts, onClose }) {
  const [reason, setReason] = useState("");
  const first = useRef(null);
  useEffect(() => first.current?.focus(), []);
  const send = async (what) => {
    await acts.run({ what, id: call.call_id, seq: call.seq, ...(reason.trim() ? { reason: reason.trim() } : {}) });
    onClose();
  };
  return html`<${Dialog} title=${`May ${call.tool} run?`} onClose=${onClose}>
    <div class="act-form">
      ${call.reason && html`<p><${Text} text=${call.reason} most=${600} /></p>`}
      <${Text} text=${argumentsOf(call) || "No arguments."} block=${true} />
      <p class="note">An approval is for this call alone, exactly as it stands here; the agent goes on with its next run. Asked in event${" "}
        <${EventLink} workspace=${workspace} seq=${call.seq} /></p>
      <${Field} label="Reason (the agent is told; may be empty)"><textarea ref=${first} rows="2" value=${reason} maxlength="2000"
        onInput=${(event) => setReason(event.currentTarget.value)}></textarea><//>
      <div class="act-buttons">
        <button class="quiet" onClick=${onClose}>Decide later</button>
        <button data-act="deny" disabled=${acts.busy !== ""} onClick=${() => send("deny")}>Deny</button>
        <button data-act="approve" class="primary" disabled=${acts.busy !== ""} onClick=${() => send("approve")}>Approve once</button>
      </div>
    </div>
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
      <span class="waiting-what"><strong><${Text} text=${call.tool} most=${60} /></strong>${gist(call) && html` <code><${Text} text=${gist(call)} most=${120} /></code>`}</span>
      ${!readOnly && html`<button class="primary" onClick=${() => setOpen(call)}>Decide…</button>`}
    </div>`)}
    ${waiting.length > 5 && html`<p class="note">And ${waiting.length - 5} more.</p>`}
    <${ActResult} workspace=${workspace} result=${acts.result} onReload=${reload} />
    ${open && html`<${DecideDialog} key=${open.call_id} workspace=${workspace} call=${open} acts=${acts} onClose=${() => setOpen(null)} />`}
  </section>`}
    ${children}<//>`;
}
