import { html } from "../lib.js";
import { ViewHead } from "../parts.js";

export default function Timeline() {
  return html`<${ViewHead} title="Timeline" />`;
}
