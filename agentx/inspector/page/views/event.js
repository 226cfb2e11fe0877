import { html } from "../lib.js";
import { ViewHead } from "../parts.js";

export default function Event() {
  return html`<${ViewHead} title="Event" />`;
}
