// The files of the artifacts, now or as they were at a moment.
import { useGet } from "../api.js";
import { html, useEffect, useState } from "../lib.js";
import { Badge, Empty, EventLink, Field, FileLink, Loaded, Pager, ViewHead, When } from "../parts.js";
import { setQuery } from "../router.js";
import { bytes, plural } from "../text.js";

const LIMIT = 100;

export default function Files({ workspace, query }) {
  const offset = Number(query.offset) || 0;
  const [words, setWords] = useState(query.q ?? "");
  useEffect(() => setWords(query.q ?? ""), [query.q]);
  const found = useGet([workspace, "files"], { q: query.q, at: query.at, offset, limit: LIMIT });
  const submit = (event) => {
    event.preventDefault();
    setQuery({ q: words.trim(), offset: "" });
  };
  return html`<${ViewHead} title="Files">
      ${query.at ? html`As they were after event <${EventLink} workspace=${workspace} seq=${query.at} />.` : "What the work has produced so far."}
    <//>
    <form class="filters" role="search" onSubmit=${submit}>
      <${Field} label="Part of a path" wide><input type="search" data-search value=${words} maxlength="400"
        onInput=${(event) => setWords(event.currentTarget.value)} onBlur=${submit} /><//>
      ${query.at && html`<button type="button" onClick=${() => setQuery({ at: "", offset: "" })}>As they are now</button>`}
    </form>
    <div aria-busy=${found.loading ? "true" : "false"}><${Loaded} from=${found} lines=${12}>${(data) => {
      // Both come from the history's index; what it does not know of any file is no column.
      const sized = data.files.some((file) => file.size !== null);
      const dated = data.files.some((file) => file.seq > 0);
      return html`${data.files.length === 0 ? html`<${Empty} title=${query.q ? "No file's path matches." : "There are no files yet."}>${query.q ? "Use a shorter part of it." : html`Add some: <code>agentx add FILE</code>.`}<//>`
        : html`<div class="card"><div class="table-wrap"><table>
          <caption class="hidden-text">${plural(data.total, "file")}</caption>
          <thead><tr><th scope="col">File</th>${sized && html`<th scope="col" class="num">Size</th>`}${dated && html`<th scope="col">Last changed</th>`}</tr></thead>
          <tbody>${data.files.map((file) => html`<tr key=${file.path}>
            <td><${FileLink} workspace=${workspace} path=${file.path} at=${query.at} row />
              ${file.executable && html` <${Badge}>program<//>`}${file.link && html` <${Badge}>link<//>`}</td>
            ${sized && html`<td class="num">${bytes(file.size)}</td>`}
            ${dated && html`<td>${file.seq > 0 && html`<${EventLink} workspace=${workspace} seq=${file.seq} /> <${When} at=${file.at} date />`}</td>`}</tr>`)}</tbody>
        </table></div></div>
        <${Pager} offset=${offset} limit=${LIMIT} total=${data.total} onOffset=${(next) => setQuery({ offset: next || "" })} />`}`;
    }}<//></div>`;
}
