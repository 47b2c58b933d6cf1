// The box at the end of the talk, in which the next prompt is written: text, images, variables, and Send.

import { button, make, once, statusLine, withCode, write } from "./dom.js";
import { drawVariables } from "./variables.js";

const SETTING = "famnb-enter-sends"; // where the browser keeps what Enter does

function readSetting() {
  try {
    return globalThis.localStorage?.getItem(SETTING) !== "no";
  } catch {
    return true; // a page that may not store anything
  }
}

function storeSetting(sends) {
  try {
    globalThis.localStorage?.setItem(SETTING, sends ? "yes" : "no");
  } catch {
    // It holds until the page is left.
  }
}

/**
 * Makes a text area send by Enter, or by Ctrl+Enter alone; a key that an input method takes is left to it.
 * @param {HTMLTextAreaElement} area @param {() => void} send @param {() => boolean} enterSends
 */
export function sendByKeys(area, send, enterSends) {
  area.addEventListener("keydown", (event) => {
    // Else JupyterLab runs the cell, and drops the line break that follows a Shift that it has heard of.
    if (event.key === "Enter" || event.key === "Shift") event.stopPropagation();
    if (event.key !== "Enter" || event.isComposing) return;
    const isAsked = event.ctrlKey || event.metaKey;
    if (!isAsked && (event.shiftKey || !enterSends())) return;
    event.preventDefault();
    send();
  });
}

/** The images of the prompt, each with its thumbnail and a button that removes it. */
function drawPictures(outbox) {
  const list = make("ul", "famnb-pictures");
  list.setAttribute("aria-label", "Images");
  const draw = ({ label, url }, index) => {
    const image = url ? Object.assign(make("img"), { src: url, alt: "" }) : make("span", "famnb-link", "link");
    const name = label.split(",")[0].slice(0, 30);
    const remove = button("famnb-icon", `Remove ${name}`, "", () => outbox.now({ kind: "remove", image: index }));
    remove.textContent = "×";
    const item = make("li", "", image, make("span", "famnb-caption", label), remove);
    item.title = label;
    return item;
  };
  return {
    element: list,
    tell: (pictures) => {
      list.replaceChildren(...pictures.map(draw));
      list.hidden = !pictures.length;
    },
  };
}

function readFile(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(reader.result));
    reader.addEventListener("error", () => reject(reader.error));
    reader.readAsDataURL(file);
  });
}

/** Buttons and gestures that add images: a picker, an address, paste and drop on `box`. */
function drawImageAdder(outbox, box) {
  const add = async (files) => {
    for (const file of files) outbox.now({ kind: "image", name: file.name || "pasted", url: await readFile(file) });
  };
  const picker = Object.assign(make("input", "famnb-file"), { type: "file", multiple: true, accept: ".png,.jpg,.jpeg,.gif,.webp" });
  picker.setAttribute("aria-label", "Choose images");
  picker.tabIndex = -1;
  picker.addEventListener("change", () => {
    add([...picker.files]);
    picker.value = "";
  });
  const choose = button("", "Add images", "", () => picker.click());
  choose.title = "Images to send with the prompt; they can also be pasted and dropped into the prompt";
  const address = Object.assign(make("input", "famnb-input"), { placeholder: "https://… of an image, Enter" });
  address.setAttribute("aria-label", "Address of an image");
  address.hidden = true;
  const link = button("", "Image link", "", () => {
    address.hidden = !address.hidden;
    link.setAttribute("aria-expanded", !address.hidden);
    if (!address.hidden) address.focus();
  });
  link.setAttribute("aria-expanded", "false");
  address.addEventListener("keydown", (event) => {
    if (event.key === "Escape") link.click();
    if (event.key !== "Enter" || !address.value.trim()) return;
    event.preventDefault();
    outbox.now({ kind: "image", name: "", url: address.value.trim() });
    address.value = "";
  });
  const filesOf = (data) => [...(data?.files ?? [])].filter((file) => file.type.startsWith("image/"));
  box.addEventListener("paste", (event) => {
    const files = filesOf(event.clipboardData);
    if (!files.length) return;
    event.preventDefault();
    event.stopPropagation();
    add(files);
  });
  // Without this the notebook takes what is dropped, or the browser opens it.
  for (const name of ["dragenter", "dragover", "lm-dragenter"]) {
    box.addEventListener(name, (event) => {
      if (![...(event.dataTransfer?.types ?? [])].includes("Files")) return;
      event.preventDefault();
      event.stopPropagation();
      box.classList.add("famnb-dropping");
    });
  }
  box.addEventListener("dragleave", () => box.classList.remove("famnb-dropping"));
  box.addEventListener("drop", (event) => {
    box.classList.remove("famnb-dropping");
    if (!event.dataTransfer?.files.length) return;
    event.preventDefault();
    event.stopPropagation();
    add([...event.dataTransfer.files]);
  });
  return [choose, link, address, picker];
}

/**
 * Draws the box.
 * @param {{later: Function, now: Function, flush: Function, holds: Function}} outbox
 * @param {() => void} stop
 * @param {string} whom what is appended to Send and Stop: " all"
 */
export function drawPromptBox(outbox, stop, whom = "") {
  const area = make("textarea", "famnb-prompt");
  area.rows = 1;
  const label = make("label", "famnb-field", make("span", "famnb-hidden", "Prompt"), area);
  const element = make("div", "famnb-writer");
  const enter = Object.assign(make("input"), { type: "checkbox", checked: readSetting() });
  const enterBox = make("label", "famnb-box famnb-enter", enter, make("span", "", "Enter sends"));
  enterBox.title = "Shift+Enter breaks the line, Ctrl+Enter always sends; while an answer is written, once it has ended";
  let state = { busy: false, trouble: "", remark: "" };
  let form = { fault: "", replaced: false, remarks: [] };
  let isLost = false;
  let isLocked = false; // whether what was sent is on its way
  let isNext = false; // whether what stands here is sent once the answer has ended
  let sent = ""; // it comes back into the box if it could not be sent
  let hasTalk = false;

  const isAnswered = () => !isLocked && !state.busy;
  const canSend = () => !isLost && isAnswered() && !form.fault && (area.value.trim() || (form.replaced && !hasTalk));
  const send = () => {
    // An answer looks complete a moment before its turn has ended: an Enter in between must not be lost.
    isNext = !isLost && !isAnswered() && !form.fault && Boolean(area.value.trim());
    if (!canSend()) {
      settle();
      return;
    }
    sent = area.value;
    area.value = "";
    isLocked = true;
    outbox.flush();
    outbox.now({ kind: "send", prompt: sent });
    settle();
    area.focus();
  };
  // Nobody has taken what was sent; what has been written since stays below it.
  const giveBack = () => {
    if (isLocked) area.value = [sent, area.value].filter(Boolean).join("\n");
    isLocked = false;
  };
  const stopAll = () => {
    isNext = false;
    stop();
    settle();
  };
  const sendNext = () => {
    if (isNext && isAnswered()) send();
  };
  const sending = button("famnb-send", `Send${whom && " to"}${whom}`, "", once(send));
  const stopping = button("famnb-stop", `Stop${whom}`, "Esc", stopAll);
  const hint = statusLine("famnb-hint");
  const estimate = make("span", "famnb-estimate");
  const alarm = make("p", "famnb-failure");
  alarm.setAttribute("role", "alert");
  const remarks = make("div", "famnb-remarks");
  const pictures = drawPictures(outbox);
  const variables = drawVariables(
    (rows, row) => outbox.later("rows", { kind: "rows", rows, row }),
    () => outbox.now({ kind: "run rows" }),
  );
  const bar = make("div", "famnb-bar", sending, stopping, ...drawImageAdder(outbox, element), enterBox, hint, estimate);
  element.append(remarks, alarm, make("div", "famnb-writing", pictures.element, label), variables.element, bar);

  const settle = () => {
    const { busy } = state;
    const keys = enter.checked ? "Enter" : "Ctrl+Enter";
    sending.lastElementChild?.remove();
    sending.append(make("kbd", "", keys));
    sending.title = `${sending.ariaLabel} (${keys})`;
    sending.disabled = !canSend();
    sending.hidden = busy;
    stopping.hidden = !busy;
    stopping.disabled = isLost;
    area.placeholder = form.replaced && !hasTalk
      ? "The conversation in the settings is sent instead"
      : hasTalk ? "Say what comes next" : "Ask something";
    const next = "Sent when the answer has ended";
    write(hint, isLocked ? "Waiting for the kernel …" : isNext ? next : busy ? "" : form.fault);
    hint.classList.toggle("famnb-fault", Boolean(form.fault));
    estimate.hidden = busy || !canSend();
    write(alarm, state.trouble);
    alarm.hidden = !state.trouble;
    const lines = [...form.remarks, ...(state.remark ? [state.remark] : [])];
    if (remarks.dataset.lines !== lines.join("\n")) {
      remarks.dataset.lines = lines.join("\n");
      remarks.replaceChildren(...lines.map((line) => withCode(make("p", "famnb-remark"), line)));
    }
  };
  area.addEventListener("input", () => {
    isNext = false;
    outbox.later("prompt", { kind: "prompt", text: area.value });
    settle();
  });
  enter.addEventListener("change", () => {
    storeSetting(enter.checked);
    settle();
  });
  sendByKeys(area, send, () => enter.checked);
  settle();
  return {
    element,
    area,
    stop: stopAll,
    enterSends: () => enter.checked,
    /** Writes a text, as an example does. */
    suggest: (text) => {
      area.value = text;
      area.dispatchEvent(new Event("input"));
      area.focus();
    },
    tell: (said) => {
      form = said;
      const isHeld = area.matches(":focus") || isLocked || outbox.holds("prompt");
      if ((said.force || !isHeld) && area.value !== said.prompt) area.value = said.prompt;
      write(estimate, said.estimate[0]);
      estimate.title = said.estimate[1];
      variables.tell(said.variables, outbox.holds("rows"));
      settle();
    },
    tellPictures: pictures.tell,
    tellState: (said) => {
      state = said;
      settle();
      sendNext();
    },
    /** The kernel has taken what was sent, or could not. */
    taken: (ok) => {
      if (!ok) giveBack();
      isLocked = false;
      isNext &&= ok;
      settle();
      sendNext();
    },
    tellTalk: (some) => {
      hasTalk = some;
      settle();
    },
    lose: () => {
      isLost = true;
      isNext = false;
      giveBack();
      area.readOnly = true;
      settle();
    },
  };
}
