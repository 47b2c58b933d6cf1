// What a page can do about its kernel and its notebook beyond messages, where the host allows it.
/**
 * Interrupts the kernel through the server, by HTTP: a cell that runs blocking code reads no messages.
 * @param {string} kernel
 */
export async function interruptKernel(kernel) {
  const config = JSON.parse(document.getElementById("jupyter-config-data")?.textContent || "{}");
  const base = config.baseUrl || document.body.dataset.baseUrl || "/";
  const xsrf = /(?:^|; )_xsrf=([^;]*)/.exec(document.cookie)?.[1];
  /** @type {Record<string, string>} */
  const headers = {};
  if (xsrf) headers["X-XSRFToken"] = decodeURIComponent(xsrf);
  if (config.token) headers.Authorization = `token ${config.token}`;
  const url = `${base}api/kernels/${encodeURIComponent(kernel)}/interrupt`;
  const answer = await fetch(url, { method: "POST", credentials: "same-origin", headers });
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
}
/** Returns whether cells can be inserted: JupyterLab and Notebook show their application only where a setting says so. */
export function canInsertCell() {
  return Boolean(globalThis.jupyterapp?.commands?.hasCommand("notebook:insert-cell-below"));
}
/** The cell that was inserted and run last, until its tool has come. @type {HTMLElement | null} */
let runCell = null;
/** Returns, once, whether a tool stands in the cell that was inserted and run last. @param {HTMLElement} element */
export function isInserted(element) {
  if (!runCell?.contains(element)) return false;
  runCell = null;
  return true;
}
/**
 * Inserts a cell below the one that an element is in, and shows it; runs it if it `isRun`.
 * @param {HTMLElement} element @param {string} source @param {boolean} isRun
 */
export async function insertCell(element, source, isRun) {
  const notebook = globalThis.jupyterapp.shell.currentWidget.content;
  const index = notebook.widgets.findIndex((cell) => cell.node.contains(element));
  const place = (index >= 0 ? index : notebook.activeCellIndex) + 1;
  // With its text at once: which cell is active may change at any moment, and the text would go into another one.
  notebook.model.sharedModel.insertCell(place, { cell_type: "code", source, metadata: {} });
  notebook.deselectAll();
  notebook.activeCellIndex = place;
  await notebook.scrollToItem?.(place);
  if (!isRun) return;
  runCell = notebook.widgets[place].node;
  await globalThis.jupyterapp.commands.execute("notebook:run-cell");
}
