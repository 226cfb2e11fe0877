// Addresses of the page: #/WORKSPACE/VIEW/ARGUMENT?query. Nothing of them reaches the server but through api.js.
import { useEffect, useState } from "./lib.js";

/** Build an address: `link("w1", "event", 12)`, `link("w1", "timeline", null, {type: "RunEnded"})`. */
export function link(workspace, view = "timeline", arg = null, query = {}) {
  const parts = [workspace, view, ...(arg === null || arg === undefined ? [] : [arg])];
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") search.set(name, String(value));
  }
  const tail = search.size ? `?${search}` : "";
  return `#/${parts.map((part) => encodeURIComponent(part)).join("/")}${tail}`;
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Read the address: `{workspace, view, arg, query}`. */
export function readRoute() {
  const [path, search = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [workspace = "", view = "", ...rest] = path.split("/").map(decode);
  return { workspace, view, arg: rest.length ? rest.join("/") : null, query: Object.fromEntries(new URLSearchParams(search)) };
}

/** Go to an address; `replace` leaves no step in the browser's history. */
export function go(address, { replace = false } = {}) {
  if (replace) {
    history.replaceState(null, "", address);
    window.dispatchEvent(new HashChangeEvent("hashchange"));
  } else {
    location.hash = address;
  }
}

/** Change parts of the query of the present address; empty values leave it. */
export function setQuery(changes, options = { replace: true }) {
  const route = readRoute();
  go(link(route.workspace, route.view, route.arg, { ...route.query, ...changes }), options);
}

/** The present address, kept up to date. */
export function useRoute() {
  const [route, setRoute] = useState(readRoute);
  useEffect(() => {
    const changed = () => setRoute(readRoute());
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  return route;
}
