// The router's table: a view is a module whose default export is a component with {workspace, arg, query}.
// `nav`: its title in the menu, none for a view that is reached by a link. `key`: the letter after `g`.
export const VIEWS = {
  __proto__: null, // a name from the address is looked up here
  timeline: { title: "Timeline", nav: "Timeline", group: "Work", key: "t", load: () => import("./timeline.js") },
  event: { title: "Event", under: "timeline", load: () => import("./event.js") },
  context: { title: "Context", nav: "Context", group: "Work", key: "c", load: () => import("./context.js") },
  search: { title: "Search", nav: "Search", group: "Work", key: "s", load: () => import("./search.js") },
  files: { title: "Files", nav: "Files", group: "Work", key: "f", load: () => import("./files.js") },
  file: { title: "File", under: "files", load: () => import("./file.js") },
};

/** Groups of the menu, in order. */
export const GROUPS = ["Work", "Memory", "Agents"];
