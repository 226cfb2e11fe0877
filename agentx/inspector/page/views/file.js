import { html } from "../lib.js";
import { ViewHead } from "../parts.js";

export default function File() {
  return html`<${ViewHead} title="File" />`;
}
