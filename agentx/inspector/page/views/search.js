import { html } from "../lib.js";
import { ViewHead } from "../parts.js";

export default function Search() {
  return html`<${ViewHead} title="Search" />`;
}
