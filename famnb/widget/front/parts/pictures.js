// The images of a prompt: chosen, pasted or dropped.

import { html, useRef, useState } from "../vendor/preact.js";
import { useTool } from "../runtime/tool.js";
import { Button, IntentButton } from "./button.js";

/** The images, each with its thumbnail and a button that removes it.
 * @param {{pictures: import("../protocol.js").PictureView[]}} props
 */
export function Pictures({ pictures }) {
  if (!pictures.length) return null;
  return html`<ul class="famnb-pictures" aria-label="Images">
    ${pictures.map(
      ({ key, label, url }) => html`<li key=${key} title=${label}>
        ${url ? html`<img src=${url} alt="" />` : html`<span class="famnb-link">link</span>`}
        <span class="famnb-caption">${label}</span>
        <${IntentButton} class="famnb-icon" label=${`Remove ${label.split(",")[0].slice(0, 30)}`} text="×" intent="remove_image" args=${{ image: Number(key) }} lock=${key} />
      </li>`,
    )}
  </ul>`;
}

// A larger one is read in part, since the connection could not carry it, and is refused by Python (images.py: LIMIT_BYTES).
const readFile = (file) =>
  new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(reader.result));
    reader.addEventListener("error", () => reject(reader.error));
    reader.readAsDataURL(file.slice(0, 5 * 2 ** 20 + 1, file.type));
  });

const imagesOf = (data) => [...(data?.files ?? [])].filter((file) => file.type.startsWith("image/"));

/** Returns listeners for a box into which images are pasted and dropped, and what adds files. */
export function useDrop() {
  const { outbox } = useTool();
  const [isOver, setOver] = useState(false);
  const add = async (files) => {
    for (const file of files) outbox.send("add_image", { name: file.name || "pasted", url: await readFile(file) });
  };
  // Without this the notebook takes what is dropped, or the browser opens it.
  const take = (event) => {
    event.preventDefault();
    event.stopPropagation();
  };
  const over = (event) => {
    if (![...(event.dataTransfer?.types ?? [])].includes("Files")) return;
    take(event);
    setOver(true);
  };
  const drop = {
    "data-dropping": isOver ? "true" : undefined,
    onPaste: (event) => {
      const files = imagesOf(event.clipboardData);
      if (!files.length) return;
      take(event);
      add(files);
    },
    onDragEnter: over,
    onDragOver: over,
    "onlm-dragenter": over,
    onDragLeave: () => setOver(false),
    onDrop: (event) => {
      setOver(false);
      if (!event.dataTransfer?.files.length) return;
      take(event);
      add([...event.dataTransfer.files]);
    },
  };
  return { drop, add };
}

/** A button that adds images by a picker. @param {{add: (files: File[]) => void}} props */
export function PictureAdder({ add }) {
  const picker = useRef(/** @type {any} */ (null));
  const pick = () => {
    add([...picker.current.files]);
    picker.current.value = "";
  };
  return html`<${Button}
      label="Add images"
      title="Images to send with the prompt; they can also be pasted and dropped into the prompt"
      press=${() => picker.current.click()}
    />
    <input
      class="famnb-hidden"
      type="file"
      multiple
      accept=".png,.jpg,.jpeg,.gif,.webp"
      aria-label="Choose images"
      tabindex="-1"
      ref=${picker}
      onChange=${pick}
    />`;
}
