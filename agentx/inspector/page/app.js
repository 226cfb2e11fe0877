// The page: takes the token, lists the workspaces, shows the view that the address names.
import { Waiting } from "./actions.js";
import { REOPEN, takeToken, useGet } from "./api.js";
import { KEYS, keysOn, setKeysOn, useKeys } from "./keys.js";
import { html, render, useEffect, useRef, useState } from "./lib.js";
import { Dialog, Empty, ErrorBox, Loaded, Skeleton, Text, Toasts, ViewHead } from "./parts.js";
import { go, link, useRoute } from "./router.js";
import { plain, shorten } from "./text.js";
import { belongs, firstOf, FLEET, GROUPS, VIEWS } from "./views/index.js";

const THEME = "agentx.inspector.theme";
const THEMES = ["system", "light", "dark"];

function useTheme() {
  const [theme, setTheme] = useState(() => {
    try {
      return THEMES.includes(localStorage.getItem(THEME)) ? localStorage.getItem(THEME) : "system";
    } catch {
      return "system";
    }
  });
  useEffect(() => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem(THEME, theme);
    } catch {
      // Without storage the choice lasts as long as the tab.
    }
    window.dispatchEvent(new Event("themechange"));
  }, [theme]);
  return [theme, setTheme];
}

/** Load a view's module; a view that cannot be loaded says so. */
function View({ route }) {
  const [loaded, setLoaded] = useState({});
  const known = VIEWS[route.view] && belongs(VIEWS[route.view], route.workspace) ? VIEWS[route.view] : null;
  useEffect(() => {
    if (!known) return undefined;
    let left = false; // a view that comes late may not take the place of the one that was gone to since
    const show = (found) => left || setLoaded({ view: route.view, ...found });
    known.load().then((module) => show({ Part: module.default })).catch((error) => show({ error }));
    return () => { left = true; };
  }, [route.view]);
  if (!known) return html`<${Empty} title="There is no such view.">Choose one in the menu.<//>`;
  if (loaded.view !== route.view) return html`<${Skeleton} lines=${8} />`;
  if (loaded.error) {
    return html`<${ViewHead} title=${known.title} /><${ErrorBox} error=${{ message: "This view could not be loaded: the server does not answer.", status: 0 }} />`;
  }
  return html`<${loaded.Part} key=${`${route.workspace}/${route.view}`} ...${route} />`;
}

function Menu({ route, workspaces, theme, setTheme, onHelp, onChosen }) {
  const current = VIEWS[route.view]?.under ?? route.view;
  const views = Object.entries(VIEWS).filter(([, view]) => view.nav && belongs(view, route.workspace));
  return html`<nav class="menu" aria-label="Views">
    ${workspaces.length > 1 && html`<label class="field"><span>Workspace</span>
      <select value=${route.workspace} onChange=${(event) => go(link(event.currentTarget.value, firstOf(event.currentTarget.value)))}>
        ${workspaces.map((one) => html`<option key=${one.id} value=${one.id} selected=${one.id === route.workspace}>${plain(shorten(one.title || one.name, 60))}</option>`)}
      </select></label>`}
    ${GROUPS.map((group) => {
      const within = views.filter(([, view]) => view.group === group);
      return within.length > 0 && html`<div key=${group}>
        <p class="menu-group" id=${`group-${group}`}>${group}</p>
        <ul aria-labelledby=${`group-${group}`}>${within.map(([name, view]) => html`<li key=${name}>
          <a href=${link(route.workspace, name)} aria-current=${name === current ? "page" : undefined} onClick=${onChosen}>${view.nav}</a>
        </li>`)}</ul>
      </div>`;
    })}
    <div class="menu-foot">
      <label class="field"><span>Colours</span>
        <select value=${theme} onChange=${(event) => setTheme(event.currentTarget.value)}>
          ${THEMES.map((name) => html`<option key=${name} value=${name} selected=${name === theme}>${{ system: "As the system", light: "Light", dark: "Dark" }[name]}</option>`)}
        </select></label>
      <button class="quiet" onClick=${onHelp}>Keyboard <kbd>?</kbd></button>
    </div>
  </nav>`;
}

function Help({ onClose }) {
  const [on, setOn] = useState(keysOn);
  return html`<${Dialog} title="Keyboard" onClose=${onClose}>
    <dl class="keys">${KEYS.map(([key, does]) => html`<div key=${key}><dt><kbd>${key}</kbd></dt><dd>${does}</dd></div>`)}</dl>
    <label class="check"><input type="checkbox" checked=${on}
      onChange=${(event) => { setKeysOn(event.currentTarget.checked); setOn(event.currentTarget.checked); }} />
      Single-letter shortcuts</label>
  <//>`;
}

/** Move the focus to the title of a view that was opened, so that keyboard and screen reader go on from there. */
function useTitle(route, name) {
  const before = useRef(null);
  useEffect(() => {
    const view = VIEWS[route.view]?.title ?? "Inspector";
    const arg = route.arg === null ? "" : ` ${plain(shorten(route.arg, 60))}`;
    document.title = [`${view}${arg}`, plain(shorten(name, 60)), "AgentX"].filter(Boolean).join(" · ");
    const now = `${route.workspace}/${route.view}/${route.arg}`;
    if (!route.view) return;
    if (before.current !== null && before.current !== now) {
      let tries = 0;
      const focus = () => {
        const title = document.querySelector("#main h1");
        if (title) title.focus({ preventScroll: true });
        else if (++tries < 60) requestAnimationFrame(focus);
      };
      requestAnimationFrame(focus);
    }
    before.current = now;
  }, [route.workspace, route.view, route.arg, name]);
}

function Shell({ workspaces }) {
  const route = useRoute();
  const [theme, setTheme] = useTheme();
  const [help, setHelp] = useState(false);
  const [open, setOpen] = useState(false);
  const known = workspaces.find((one) => one.id === route.workspace);
  const name = known ? known.title || known.name : "";
  useKeys(() => setHelp(true));
  useTitle(route, name);
  useEffect(() => setOpen(false), [route.view, route.arg]);
  useEffect(() => {
    if (workspaces.length && (!route.workspace || (known && !route.view))) {
      const id = known?.id ?? workspaces[0].id;
      go(link(id, firstOf(id)), { replace: true });
    }
  }, [route.workspace, route.view]);
  return html`<div class=${`shell ${open ? "menu-open" : ""}`}>
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.querySelector("#main h1")?.focus(); }}>Skip to the content</a>
    <header class="side">
      <div class="brand">
        <img src="icon.svg" alt="" width="28" height="28" />
        <div class="brand-text"><strong>AgentX</strong><span class="brand-name" title=${plain(known?.path)}>${name ? html`<${Text} text=${name} most=${80} />` : "Inspector"}</span></div>
        <button class="menu-button" aria-expanded=${open ? "true" : "false"} onClick=${() => setOpen(!open)}>Menu</button>
      </div>
      <${Menu} ...${{ route, workspaces, theme, setTheme }} onHelp=${() => setHelp(true)} onChosen=${() => setOpen(false)} />
    </header>
    <main id="main">
      ${known?.id === FLEET ? html`<${View} route=${route} />` : known ? html`<${Waiting} key=${known.id} workspace=${known.id}><${View} route=${route} /><//>`
        : workspaces.length === 0 ? html`<${Empty} title="No workspace is open here.">Run <code>${REOPEN} DIR</code> with the directory of a workspace.<//>`
        : route.workspace ? html`<${Empty} title="This workspace is not open here.">Run <code>${REOPEN} DIR</code> with its directory, or choose another in the menu.<//>` : html`<${Skeleton} />`}
    </main>
    ${help && html`<${Help} onClose=${() => setHelp(false)} />`}
    <${Toasts} />
  </div>`;
}

function App({ token }) {
  const list = useGet(token ? ["workspaces"] : null);
  if (!token) {
    return html`<main class="boot"><h1>AgentX inspector</h1>
      <p>This page needs the address that <code>${REOPEN}</code> prints. Run <code>${REOPEN}</code> in a terminal: it opens the page.</p></main>`;
  }
  if (list.error) return html`<main class="boot"><h1>AgentX inspector</h1><${ErrorBox} error=${list.error} retry=${list.reload} /></main>`;
  if (!list.data) return html`<main class="boot"><h1>AgentX inspector</h1><${Skeleton} lines=${4} /></main>`;
  return html`<${Shell} workspaces=${list.data.workspaces} />`;
}

const root = document.getElementById("app");
root.replaceChildren();
render(html`<${App} token=${takeToken()} />`, root);
