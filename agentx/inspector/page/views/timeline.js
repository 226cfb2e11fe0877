// The history, newest first: filters, pages in both directions, and what is being recorded now.
import { ApiError, get, useGet, useStream } from "../api.js";
import { html, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../lib.js";
import { Actor, Choice, Empty, ErrorBox, Field, Skeleton, Text, TypeName, ViewHead, When } from "../parts.js";
import { link, setQuery } from "../router.js";
import { moment, number, plain, plural, typeTitle } from "../text.js";
import { VIEWS } from "./index.js";

const PAGE = 100;
/** Rows in the document at most; a page that enters at one end takes one away at the other. */
const MOST = 400;
/** A filter may need many requests until it finds a row; after this many the user decides. */
const PATIENCE = 8;
const FILTERS = ["q", "type", "actor", "run", "path"];

/** The list as it was left, so that going back from an event finds the same place. */
let kept = null;

const filtersOf = (query) => Object.fromEntries(FILTERS.map((name) => [name, query[name] ?? ""]));
const first = (rows) => (rows.length ? rows[0].seq : 0);
const last = (rows) => (rows.length ? rows[rows.length - 1].seq : 0);

/** Loads pages; `rows` are newest first. `more`: seq before which older ones go on, null at the end. */
function useRows(workspace, query) {
  const filters = filtersOf(query);
  const key = JSON.stringify([workspace, filters, query.before ?? ""]);
  const blank = { key, rows: [], more: undefined, above: Boolean(query.before), total: null, error: null, busy: null, dry: false };
  const [state, setState] = useState(() => (kept?.key === key ? { ...kept.state, busy: null, error: null } : blank));
  const current = useRef(state);
  current.current = state;
  const change = (changes) => setState((was) => (was.key === key ? { ...was, ...changes } : was));

  const ask = async (params) => get([workspace, "events"], { ...filters, limit: PAGE, ...params });
  const failed = (error) => change({ busy: null, error: error instanceof ApiError ? error : new ApiError(-1, String(error)) });

  const older = async (start) => {
    let before = start;
    change({ busy: "older", error: null });
    try {
      for (let turn = 0; turn < PATIENCE; turn++) {
        const page = await ask({ before });
        const done = page.events.length > 0 || page.next === null;
        setState((was) => {
          if (was.key !== key) return was;
          const known = last(was.rows) || Infinity;
          const rows = [...was.rows, ...page.events.filter((row) => row.seq < known)];
          const excess = Math.max(0, rows.length - MOST);
          return {
            ...was, rows: rows.slice(excess), above: was.above || excess > 0, more: page.next,
            total: page.total, busy: done || turn === PATIENCE - 1 ? null : "older", dry: !done,
          };
        });
        if (done) return;
        before = page.next;
      }
    } catch (error) {
      failed(error);
    }
  };

  const newer = async () => {
    change({ busy: "newer", error: null });
    try {
      const page = await ask({ after: first(current.current.rows) });
      setState((was) => {
        if (was.key !== key) return was;
        const rows = [...page.events.filter((row) => row.seq > first(was.rows)).reverse(), ...was.rows];
        const less = rows.length > MOST;
        return {
          ...was, rows: rows.slice(0, MOST), above: page.next !== null, busy: null,
          more: less ? rows[MOST - 1].seq : was.more, total: page.total ?? was.total,
        };
      });
    } catch (error) {
      failed(error);
    }
  };

  useEffect(() => {
    if (state.key !== key) setState(kept?.key === key ? { ...kept.state, busy: null, error: null } : blank);
  }, [key]);
  useEffect(() => {
    if (state.key === key && state.more === undefined && !state.busy && !state.error) older(query.before);
  }, [key, state.key, state.more, state.error]);

  const add = useCallback((fresh) => setState((was) => {
    const rows = [...fresh.filter((row) => row.seq > first(was.rows)).reverse(), ...was.rows];
    return {
      ...was, rows: rows.slice(0, MOST), total: was.total === null ? null : was.total + fresh.length,
      more: rows.length > MOST ? rows[MOST - 1].seq : was.more,
    };
  }), []);
  const reset = () => setState({ ...blank, above: false });
  const pending = state.key !== key || (state.more === undefined && !state.error);
  return { ...state, busy: state.busy ?? (pending ? "older" : null), current, older: () => older(state.more), newer, add, reset };
}

/** One of four rails for a run: neighbours differ, since runs are numbered. */
function rail(run) {
  let sum = 0;
  for (const character of run) sum = (sum * 31 + character.codePointAt(0)) % 997;
  return sum % 4;
}

function Row({ workspace, row, fresh }) {
  return html`<li class=${`${fresh ? "fresh" : ""} ${row.actor === "user" ? "from-user" : ""}`}>
    ${row.run && html`<span class=${`rail r${rail(row.run)}`} title=${`Run ${plain(row.run)}`}></span>`}
    <a class="timeline-row" data-row href=${link(workspace, "event", row.seq)} data-seq=${row.seq}>
      <${When} at=${row.at} />
      <span class="seq">${row.seq}</span>
      <${Actor} actor=${row.actor} />
      <span class="what"><${Text} text=${row.text || typeTitle(row.type)} most=${400} /></span>
      <${TypeName} type=${row.type} />
    </a>
  </li>`;
}

function Filters({ workspace, query, overview }) {
  const [words, setWords] = useState(query.q ?? "");
  const [path, setPath] = useState(query.path ?? "");
  useEffect(() => setWords(query.q ?? ""), [query.q]);
  useEffect(() => setPath(query.path ?? ""), [query.path]);
  const change = (changes) => setQuery({ before: "", ...changes });
  // The chosen one is an option before the counts are known, or the browser would show "All" for it.
  const counted = (counts, title, value) => [["", "All"], ...(!value || Object.hasOwn(counts ?? {}, value) ? [] : [[value, title(value)]]),
    ...Object.entries(counts ?? {}).sort((a, b) => b[1] - a[1]).map(([name, count]) => [name, `${title(name)} (${number(count)})`])];
  const chosen = FILTERS.some((name) => query[name]) || query.before;
  const submit = (event) => {
    event.preventDefault();
    change({ q: words.trim(), path: path.trim() });
  };
  return html`<form class="filters" role="search" aria-label="Filter the timeline" onSubmit=${submit}>
    <${Field} label="Words" wide>
      <input type="search" data-search value=${words} placeholder="in any part of an event" maxlength="400"
        onInput=${(event) => setWords(event.currentTarget.value)} onBlur=${submit} />
    <//>
    <${Choice} label="What" value=${query.type ?? ""} options=${counted(overview?.counts, typeTitle, query.type)} onChange=${(type) => change({ type })} />
    <${Choice} label="Who" value=${query.actor ?? ""} options=${counted(overview?.actors, (name) => name, query.actor)} onChange=${(actor) => change({ actor })} />
    <${Field} label="File or folder">
      <input type="text" value=${path} placeholder="chapters/" maxlength="400"
        onInput=${(event) => setPath(event.currentTarget.value)} onBlur=${submit} />
    <//>
    <button type="submit" class="hidden-text" tabindex="-1">Filter</button>
    ${chosen && html`<button type="button" onClick=${() => setQuery(Object.fromEntries([...FILTERS, "before"].map((name) => [name, ""])))}>Clear</button>`}
  </form>
  ${(query.run || query.before) && html`<p class="chips">
    ${query.run && html`<span class="chip">Run <${Text} text=${query.run} most=${40} /><button class="quiet" aria-label="All runs" onClick=${() => change({ run: "" })}>✕</button></span>`}
    ${query.before && html`<span class="chip">Before event ${number(Number(query.before))}<button class="quiet" aria-label="From the newest event" onClick=${() => setQuery({ before: "" })}>✕</button></span>`}
  </p>`}`;
}

/** Days with their rows. */
function groups(rows) {
  const found = [];
  for (const row of rows) {
    const day = moment(row.at)?.day ?? "No date";
    if (found.at(-1)?.day !== day) found.push({ day, rows: [] });
    found.at(-1).rows.push(row);
  }
  return found;
}

const STATES = { live: ["good", "Live"], waiting: ["", "Connecting …"], gone: ["bad", "Not live"] };

export default function Timeline({ workspace, query }) {
  const overview = useGet([workspace, "overview"]);
  const list = useRows(workspace, query);
  const [waiting, setWaiting] = useState(0);
  const [freshFrom, setFreshFrom] = useState(Infinity);
  const filtered = FILTERS.some((name) => query[name]);
  const queue = useRef([]);
  const timer = useRef(null);
  const seen = useRef(0);
  const latest = useRef({});
  latest.current = { list, filtered };

  // What arrives within a moment is shown at once: a run may record hundreds of events in a second.
  const arrive = () => {
    timer.current = null;
    const { list: now, filtered: narrow } = latest.current;
    const fresh = queue.current.splice(0);
    if (now.above || window.scrollY > 160) setWaiting((was) => was + fresh.length);
    else if (narrow) now.newer();
    else {
      setFreshFrom((was) => Math.min(was, fresh[0].seq));
      now.add(fresh.slice(-MOST));
    }
  };
  const newest = overview.data ? overview.data.seq : null;
  const state = useStream(workspace, newest === null ? null : Math.max(newest, first(list.rows)), (row) => {
    seen.current = Math.max(seen.current, row.seq);
    queue.current.push(row);
    timer.current ??= setTimeout(arrive, 120);
  });
  useEffect(() => () => clearTimeout(timer.current), []);

  // Between the page of rows and the stream something may have been recorded: the first page says how far it knows.
  const gap = newest !== null && !filtered && !list.above && list.rows.length > 0 && first(list.rows) < newest;
  useEffect(() => {
    if (gap && !list.busy) list.newer();
  }, [gap]);

  useLayoutEffect(() => {
    if (kept?.key === list.key && kept.focus) {
      const row = document.querySelector(`[data-seq="${Number(kept.focus)}"]`);
      window.scrollTo(0, kept.scroll);
      requestAnimationFrame(() => requestAnimationFrame(() => row?.focus({ preventScroll: true })));
    }
    kept = null;
    return () => {
      const now = latest.current.list;
      kept = { key: now.key, state: now.current.current, scroll: window.scrollY, focus: document.activeElement?.dataset?.seq };
    };
  }, []);

  const end = useRef(null);
  const canGoOn = list.more !== null && list.more !== undefined && !list.busy && !list.error && !list.dry && list.rows.length > 0;
  useEffect(() => {
    if (!canGoOn) return undefined;
    const watch = new IntersectionObserver((entries) => entries.some((one) => one.isIntersecting) && list.older(), { rootMargin: "600px" });
    watch.observe(end.current);
    return () => watch.disconnect();
  }, [canGoOn, list.more]);

  const toTop = () => {
    setWaiting(0);
    window.scrollTo(0, 0);
    if (query.before) setQuery({ before: "" });
    else list.reset();
  };
  const days = useMemo(() => groups(list.rows), [list.rows]);
  const data = overview.data;
  const [tone, word] = STATES[state];
  return html`<div class="timeline">
    <${ViewHead} title="Timeline" aside=${html`<span class=${`stream-state ${tone}`} role="status"><span class="dot"></span>${word}</span>`}>
      ${data ? html`${plural(data.seq, "event")} since ${moment(data.first_at)?.day ?? "–"}. ${list.total !== null && filtered ? `${number(list.total)} match.` : ""}` : " "}
    <//>
    ${data && html`<${Summary} workspace=${workspace} data=${data} />`}
    ${state === "gone" && html`<div class="gap"><${ErrorBox} error=${{ status: 0, message: "The server does not answer: nothing new will appear here." }} /></div>`}
    <${Filters} workspace=${workspace} query=${query} overview=${data} />
    ${waiting > 0 && html`<div class="pill-place"><button class="primary pill" onClick=${toTop}>${plural(waiting, "new event")}: show</button></div>`}
    ${list.above && html`<div class="pager"><button disabled=${list.busy !== null} onClick=${list.newer}>Newer events</button><button class="quiet" onClick=${toTop}>Newest</button></div>`}
    <div aria-busy=${list.busy ? "true" : "false"}>
      ${days.map(({ day, rows }) => html`<section class="day" key=${`${day}${rows[0].seq}`} aria-label=${day}>
        <h2>${day}</h2>
        <ol>${rows.map((row) => html`<${Row} key=${row.seq} workspace=${workspace} row=${row} fresh=${row.seq >= freshFrom} />`)}</ol>
      </section>`)}
    </div>
    ${list.error && html`<${ErrorBox} error=${list.error} retry=${() => (list.rows.length ? list.older() : list.reset())} />`}
    ${list.busy === "older" && html`<${Skeleton} lines=${list.rows.length ? 3 : 12} />`}
    ${list.more === null && list.rows.length === 0 && !list.busy && !list.error && html`<${Empty} title=${filtered ? "No event matches." : "Nothing has been recorded yet."}>
      ${filtered ? "Use fewer words, or clear the filters." : html`Say something: <code>agentx say "…"</code>, or let an agent work: <code>agentx run "…"</code>.`}<//>`}
    ${list.dry && list.more !== null && !list.busy && !list.error && html`<${Empty} title=${`No ${list.rows.length ? "other" : ""} match in the events down to ${number(list.more)}.`}>
      <button onClick=${list.older}>Search further back</button><//>`}
    ${list.more === null && list.rows.length > 0 && html`<p class="note the-end">The beginning of the history.</p>`}
    <div ref=${end} class="end"></div>
  </div>`;
}

/** What else there is, with the views that show it. */
function Summary({ workspace, data }) {
  const memory = Object.values(data.memory ?? {}).reduce((all, count) => all + count, 0);
  const told = [
    ["runs", data.runs?.total && `${plural(data.runs.total, "run")}${data.runs.active ? `, ${number(data.runs.active)} active` : ""}`],
    ["memory", memory > 0 && plural(memory, "memory item")],
    ["candidates", data.candidates > 0 && `${plural(data.candidates, "candidate")} to settle`],
    ["problems", data.problems > 0 && plural(data.problems, "open problem")],
  ].filter(([view, text]) => text && VIEWS[view]);
  return html`${told.length > 0 && html`<p class="summary gap">${told.map(([view, text]) => html`<a key=${view} href=${link(workspace, view)}>${text}</a>`)}</p>`}
    ${data.read_only && html`<p class="note gap">Nothing can be changed here: <${Text} text=${data.read_only} most=${300} /></p>`}
    ${data.health?.damage?.length > 0 && html`<div class="error gap" role="alert"><p>The record is damaged: <${Text} text=${data.health.damage[0]} most=${300} /></p><p>Run <code>agentx verify</code>, then <code>agentx repair</code>.</p></div>`}`;
}
