// A text in a box that scrolls, with a button that copies it; a text that is too long to show is asked for when it is
// copied.

import { copyText } from "./clipboard.js";

export default {
  render({ model, el }) {
    const text = document.createElement("pre");
    text.tabIndex = 0;
    text.setAttribute("role", "region");
    text.setAttribute("aria-label", model.get("label"));
    const button = document.createElement("button");
    button.type = "button";
    button.className = "famnb-button famnb-copy";
    button.textContent = "Copy";
    button.setAttribute("aria-label", `Copy ${model.get("label")}`);
    button.dataset.lmSuppressShortcuts = "true"; // else the notebook takes Enter for its own
    const state = document.createElement("span");
    state.setAttribute("role", "status");
    let isWhole = true; // whether the text that is shown is all of it
    let timer = 0;
    const copy = async (whole) => {
      const isCopied = await copyText(whole);
      state.textContent = isCopied ? "Copied" : "Not copied: the browser does not let this page copy";
      clearTimeout(timer);
      timer = setTimeout(() => (state.textContent = ""), 4000);
      button.focus();
    };
    const onMessage = (message) => {
      if (message.kind === "text") {
        if (text.textContent !== message.text) text.textContent = message.text;
        isWhole = message.whole;
      } else if (message.kind === "copied") {
        copy(message.text);
      }
    };
    button.addEventListener("click", () => {
      if (isWhole) copy(text.textContent);
      else model.send({ kind: "copy" });
    });
    const bar = document.createElement("div");
    bar.append(button, state);
    el.classList.add("famnb", "famnb-copyable");
    el.classList.toggle("famnb-bare", model.get("bare"));
    el.append(bar, ...(model.get("bare") ? [] : [text]));
    model.on("msg:custom", onMessage);
    model.send({ kind: "ready" });
    return () => {
      model.off("msg:custom", onMessage);
      clearTimeout(timer);
    };
  },
};
