// One event stream for the whole page: a browser has six connections for a server, and each stream holds one.
import { stream } from "./api.js";
import { useEffect, useRef, useState } from "./lib.js";

const hubs = new Map();

function open(hub, workspace) {
  hub.stop = stream(workspace, hub.last, (row) => {
    hub.last = Math.max(hub.last ?? 0, row.seq);
    for (const listener of [...hub.listeners]) listener.event(row);
  }, (state) => {
    hub.state = state;
    for (const listener of [...hub.listeners]) listener.state(state);
  });
}

function close(hub) {
  hub.stop?.();
  hub.stop = null;
}

function join(workspace, listener) {
  let hub = hubs.get(workspace);
  if (!hub) {
    hub = { listeners: new Set(), last: null, state: "waiting", stop: null };
    hub.seen = () => (document.hidden ? close(hub) : hub.stop || open(hub, workspace));
    document.addEventListener("visibilitychange", hub.seen);
    hubs.set(workspace, hub);
    if (!document.hidden) open(hub, workspace);
  }
  hub.listeners.add(listener);
  listener.state(hub.state);
  return () => {
    hub.listeners.delete(listener);
    // Views come and go within a frame: the stream stays until nobody came back.
    setTimeout(() => {
      if (hub.listeners.size || hubs.get(workspace) !== hub) return;
      close(hub);
      document.removeEventListener("visibilitychange", hub.seen);
      hubs.delete(workspace);
    }, 1000);
  };
}

/** Call `onEvent(row)` for each event recorded while the component is shown; returns "live", "waiting" or "gone". */
export function useLive(workspace, onEvent) {
  const [state, setState] = useState("waiting");
  const latest = useRef(onEvent);
  latest.current = onEvent;
  useEffect(() => {
    if (!workspace) return undefined;
    return join(workspace, { event: (row) => latest.current(row), state: setState });
  }, [workspace]);
  return state;
}

/** Ask again, once for a burst of events that `matters(row)`; `reload` is that of a `useGet`. */
export function useFresh(workspace, reload, matters = () => true) {
  const timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  return useLive(workspace, (row) => {
    if (!matters(row)) return;
    clearTimeout(timer.current);
    timer.current = setTimeout(reload, 250);
  });
}
