import { html } from "../lib.js";
import { ViewHead } from "../parts.js";

export default function Context() {
  return html`<${ViewHead} title="Context" />`;
}
