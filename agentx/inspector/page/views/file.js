// One file of the artifacts, as it was at a moment.
import { useGet } from "../api.js";
import { html } from "../lib.js";
import { Card, Empty, EventLink, Loaded, ViewHead } from "../parts.js";
import { link } from "../router.js";
import { number, shorten, visible } from "../text.js";

const LINES = 5000;

export default function File({ workspace, arg, query }) {
  const found = useGet(arg ? [workspace, "file"] : null, { path: arg, at: query.at });
  if (!arg) return html`<${ViewHead} title="File" /><${Empty} title="A file is named by its path." />`;
  const aside = html`<a class="button" data-row href=${link(workspace, "timeline", null, { path: arg })}>Its history</a>
    ${query.at && html`<a class="button" data-row href=${link(workspace, "file", arg)}>As it is now</a>`}`;
  return html`<${ViewHead} title=${html`<code class="h1-path">${visible(shorten(arg, 300))}</code>`} aside=${aside}>
      ${query.at ? html`As it was after event <${EventLink} workspace=${workspace} seq=${query.at} />.` : "As it is now."}
    <//>
    <${Loaded} from=${found} lines=${14}>${(data) => {
      if (data.binary) return html`<${Empty} title="A binary file.">${number(data.size)} bytes.<//>`;
      const lines = String(data.text ?? "").split("\n");
      if (lines.at(-1) === "") lines.pop();
      return html`<${Card}><div class="code" tabindex="0" role="region" aria-label="Content of the file">
        <pre>${lines.slice(0, LINES).map((line, index) => html`<span class="code-line" key=${index}><span class="no" aria-hidden="true">${index + 1}</span><span>${visible(shorten(line, 5000))}${"\n"}</span></span>`)}</pre></div>
        ${(data.cut || lines.length > LINES) && html`<p class="note">The file is longer (${number(data.size)} bytes); this is its beginning.</p>`}<//>`;
    }}<//>`;
}
