// Requests to the backend. The token lives in memory and in this origin's storage; it is sent in a header alone.
import { useCallback, useEffect, useRef, useState } from "./lib.js";

const KEY = "agentx.inspector.token";
const BASE = new URL("api/", document.baseURI).pathname;
let token = null;

/** How to open the inspector again, as every error of a lost server says. */
export const REOPEN = "agentx inspect";

/** An answer that is not data: `status` is 0 where the server did not answer at all. */
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Take the token out of the address bar, or the one kept from before; true if there is one. */
export function takeToken() {
  const fragment = location.hash.slice(1);
  if (fragment && !fragment.startsWith("/")) {
    history.replaceState(null, "", location.pathname + "#/");
    if (/^[A-Za-z0-9_-]{16,200}$/.test(fragment)) keep(fragment);
  }
  // A tab keeps the token it was opened with, although another tab may have brought a newer one.
  token = read(sessionStorage) || read(localStorage);
  if (token) keep(token, sessionStorage);
  return Boolean(token);
}

function read(store) {
  try {
    return store.getItem(KEY);
  } catch {
    return token;
  }
}

function keep(value, ...stores) {
  token = value;
  for (const store of stores.length ? stores : [sessionStorage, localStorage]) {
    try {
      store.setItem(KEY, value);
    } catch {
      // Storage that is full or switched off: the token lasts as long as the tab.
    }
  }
}

async function request(path, options = {}) {
  const headers = { Authorization: `Bearer ${token}`, ...options.headers };
  let answer;
  try {
    answer = await fetch(BASE + path, { ...options, headers, cache: "no-store", credentials: "omit" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The server of the inspector does not answer.");
  }
  if (answer.ok) return answer;
  let message = `The server answered ${answer.status}.`;
  try {
    message = String((await answer.json()).error || message);
  } catch {
    // No JSON: the status alone has to do.
  }
  throw new ApiError(answer.status, message);
}

/** Build `W/events?limit=…`: empty parameters are left out, each part is encoded. */
export function address(parts, params = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== null && value !== "") query.set(name, String(value));
  }
  const path = parts.map((part) => encodeURIComponent(part)).join("/");
  return query.size ? `${path}?${query}` : path;
}

/** Get JSON: `get(["w1", "events"], {limit: 100})`. Throws ApiError. */
export async function get(parts, params, signal) {
  const answer = await request(address(parts, params), { signal });
  return answer.json();
}

/** Change something as the user: `act("w1", {what: "pin", id, seq})`. Throws ApiError, 409 if it changed since. */
export async function act(workspace, body) {
  const answer = await request(address([workspace, "act"]), {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  return answer.json();
}

/**
 * Data of a component: `{data, error, loading, reload}`. Asks again when the address changes; the last data stay until
 * new ones are there, unless `fresh`.
 */
export function useGet(parts, params, { fresh = false } = {}) {
  const [state, setState] = useState({ key: null, data: null, error: null });
  const [turn, setTurn] = useState(0);
  const path = parts ? address(parts, params) : null;
  const key = path && `${turn} ${path}`;
  useEffect(() => {
    if (!key) return undefined;
    const stop = new AbortController();
    get(parts, params, stop.signal)
      .then((data) => setState({ key, data, error: null }))
      .catch((error) => {
        if (error.name !== "AbortError") setState({ key, data: null, error });
      });
    return () => stop.abort();
  }, [key]);
  const reload = useCallback(() => setTurn((was) => was + 1), []);
  const loading = Boolean(key) && state.key !== key;
  const kept = loading && (fresh || state.error) ? { data: null, error: null } : state;
  return { data: kept.data, error: kept.error, loading, reload };
}

/**
 * Follow the events of a workspace after `after`: `onEvent(row)` for each, `onState("live" | "waiting" | "gone")`.
 * Connects again by itself, from the last event seen, and lets go while the page is hidden: a browser has few
 * connections to a host. Returns what stops it.
 */
export function stream(workspace, after, onEvent, onState = () => {}) {
  const stop = new AbortController();
  let last = after;
  let failures = 0;
  const take = (id, data) => {
    if (id > last) {
      last = id;
      onEvent(data);
    }
  };
  const connect = async () => {
    const connection = new AbortController();
    const end = () => connection.abort();
    const hidden = () => document.hidden && end();
    stop.signal.addEventListener("abort", end);
    document.addEventListener("visibilitychange", hidden);
    try {
      const answer = await request(address([workspace, "stream"], { after: last }), {
        signal: connection.signal,
        headers: { Accept: "text/event-stream" },
      });
      failures = 0;
      onState("live");
      if (await readEvents(answer.body, take)) failures = 4; // it said that it ends: no need to find out
    } finally {
      stop.signal.removeEventListener("abort", end);
      document.removeEventListener("visibilitychange", hidden);
    }
  };
  const run = async () => {
    while (!stop.signal.aborted) {
      await shown(stop.signal);
      try {
        await connect();
      } catch (error) {
        if (stop.signal.aborted) return;
        if (error.status >= 400 && error.status < 500) {
          onState("gone");
          return;
        }
      }
      if (stop.signal.aborted) return;
      failures += document.hidden ? 0 : 1;
      onState(failures > 3 ? "gone" : "waiting");
      await new Promise((resolve) => setTimeout(resolve, Math.min(250 * 2 ** failures, 10_000)));
    }
  };
  run();
  return () => stop.abort();
}

/** Wait until the page is shown. */
function shown(signal) {
  if (!document.hidden) return undefined;
  return new Promise((resolve) => {
    document.addEventListener("visibilitychange", resolve, { once: true });
    signal.addEventListener("abort", resolve, { once: true });
  });
}

/** Read server-sent events to their end; true if the server said that it ends. */
async function readEvents(body, onMessage) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return false;
    rest += value.replaceAll("\r", "");
    const blocks = rest.split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      let id = 0;
      const data = [];
      for (const line of block.split("\n")) {
        if (line === "event: end") return true;
        if (line.startsWith("id:")) id = Number(line.slice(3));
        else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
      }
      if (data.length) onMessage(id, JSON.parse(data.join("\n")));
    }
  }
}

/** The newest event of the workspace as it is recorded: calls `onEvent(row)` while the component is shown. */
export function useStream(workspace, after, onEvent) {
  const [state, setState] = useState("waiting");
  const latest = useRef(onEvent);
  latest.current = onEvent;
  useEffect(() => {
    if (!workspace || after === null || after === undefined) return undefined;
    return stream(workspace, after, (row) => latest.current(row), setState);
  }, [workspace, after === null || after === undefined]);
  return state;
}
