// HTML that Python has made and cleaned: the only place, with markdown.js, where a page inserts any.

import { html } from "../vendor/preact.js";
import { memo } from "../runtime/tool.js";

/** @param {{html: string, class?: string}} props `html` is a SafeHtml of the view */
export const SafeHtml = memo(({ html: source, class: name = "" }) => {
  return html`<div class=${`jp-RenderedHTMLCommon ${name}`} dangerouslySetInnerHTML=${{ __html: source }} />`;
});

/** A text with names in backticks set in code type. @param {{text: string}} props */
export function Help({ text }) {
  return text.split("`").map((piece, index) => (index % 2 ? html`<code>${piece}</code>` : piece));
}
