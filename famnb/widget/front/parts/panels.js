// The panels beside the chat: past calls and presets. Python says what each shows.

import { html, useEffect, useState } from "../vendor/preact.js";
import { useTool, useTyped } from "../runtime/tool.js";
import { Button, IntentButton } from "./button.js";
import { CellButton, Shown } from "./code.js";
import { Labelled, Select, TextInput } from "./field.js";

/** @param {{history: import("../protocol.js").HistoryView, opened: () => void}} props `opened` is called once a chat is open */
export function History({ history, opened }) {
  const { outbox } = useTool();
  const [filter, setFilter] = useTyped(history.filter, "filter_history", (text) => ({ text }));
  const args = { call: history.call };
  const row = ({ key, when, prompt, facts }) => html`<li key=${key}>
    <button type="button" class="famnb-button famnb-call" title=${prompt} aria-pressed=${String(key === history.call)} onClick=${() => outbox.send("show_call", { call: key })}>
      <span>${prompt || "(no prompt)"}</span><span class="famnb-help">${when} · ${facts}</span>
    </button>
  </li>`;
  return html`<div>
    <${Labelled} label="Filter calls" control=${(id) => html`<${TextInput} id=${id} type="search" placeholder="all calls" text=${filter} edit=${setFilter} />`} />
    <ul class="famnb-calls" aria-label="Latest calls">${history.rows.map(row)}</ul>
    ${history.call &&
    html`<div class="famnb-bar">
      <${IntentButton} class="famnb-send" label="Continue this chat" intent="load_call" args=${args} then=${opened} />
      <${CellButton} label="Inspect in a cell below" code=${`famnb.Inspector("${history.call}")`} />
    </div>`}
    <p class="famnb-help" role="status">${history.note}</p>
    ${history.call && html`<${Shown} html=${history.transcript} />`}
  </div>`;
}

/** @param {{presets: import("../protocol.js").PresetsView}} props */
export function Presets({ presets }) {
  const { outbox } = useTool();
  const { names, selected, note } = presets;
  const [chosen, setChosen] = useState(selected);
  const [name, setName] = useState("");
  useEffect(() => setChosen(selected), [selected]);
  const preset = names.includes(chosen) ? chosen : (names[0] ?? "");
  const save = () => outbox.press("save_preset", { name }).then(({ ok }) => ok && setName(""));
  const choices = names.length ? names : [/** @type {[string, string]} */ (["", "none yet"])];
  const isEmpty = !names.length;
  return html`<div>
    <${Labelled} label="Preset" control=${(id) => html`<${Select} id=${id} choices=${choices} value=${preset} change=${setChosen} />`} />
    <div class="famnb-bar">
      <${IntentButton} class="famnb-send" label="Load" intent="load_preset" args=${{ name: preset }} disabled=${isEmpty} />
      <${IntentButton} label="Delete preset" intent="delete_preset" args=${{ name: preset }} disabled=${isEmpty} />
    </div>
    <${Labelled}
      label="Save as"
      control=${(id) => html`<${TextInput} id=${id} placeholder="a name" text=${name} edit=${setName} onKeyDown=${(event) => event.key === "Enter" && save()} />`}
    />
    <div class="famnb-bar"><${Button} label="Save preset" locked=${outbox.isPending("save_preset")} press=${save} /></div>
    <p class="famnb-help" role="status">${note}</p>
  </div>`;
}
