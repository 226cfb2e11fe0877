// The router's table: a view is a module whose default export is a component with {workspace, arg, query}.
// `nav`: its title in the menu, none for a view that is reached by a link. `key`: the letter after `g`.
export const VIEWS = {
  __proto__: null, // a name from the address is looked up here
  timeline: { title: "Timeline", nav: "Timeline", group: "Work", key: "t", load: () => import("./timeline.js") },
  event: { title: "Event", under: "timeline", load: () => import("./event.js") },
  context: { title: "Context", nav: "Context", group: "Work", key: "c", load: () => import("./context.js") },
  search: { title: "Search", nav: "Search", group: "Work", key: "s", load: () => import("./search.js") },
  memory: { title: "Memory", nav: "Memory", group: "Memory", key: "m", load: () => import("./memory.js") },
  candidates: { title: "Candidates", nav: "Candidates", group: "Memory", key: "a", load: () => import("./candidates.js") },
  problems: { title: "Problems", nav: "Problems", group: "Memory", key: "p", load: () => import("./problems.js") },
  flows: { title: "Flows", nav: "Flows", group: "Memory", key: "w", load: () => import("./flows.js") },
  runs: { title: "Runs", nav: "Runs", group: "Agents", key: "r", load: () => import("./runs.js") },
  pipelines: { title: "Pipelines", nav: "Pipelines", group: "Agents", key: "l", load: () => import("./pipelines.js") },
  cognition: { title: "Cognition", nav: "Cognition", group: "Agents", key: "o", load: () => import("./cognition.js") },
  files: { title: "Files", nav: "Files", group: "Work", key: "f", load: () => import("./files.js") },
  file: { title: "File", under: "files", load: () => import("./file.js") },
  fleet: { title: "Fleet", nav: "Overview", group: "Fleet", key: "e", load: () => import("./fleet.js") },
};

/** Groups of the menu, in order. */
export const GROUPS = ["Fleet", "Work", "Memory", "Agents"];

/** The id of a fleet among the workspaces of the page; all views but one are of workspaces. */
export const FLEET = "fleet";

/** Whether a view is one of a workspace, or of the fleet. */
export const belongs = (view, workspace) => (view.group === "Fleet") === (workspace === FLEET);

/** The name of the view that a workspace opens with. */
export const firstOf = (workspace) => (workspace === FLEET ? "fleet" : "timeline");
