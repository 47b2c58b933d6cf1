// What stands around every tool: its banner, its error line, the keys that are not the notebook's; and what its components
// can ask for. A component is a pure function of the view; state of the page alone is `useState` where it is needed.

import { Component, createContext, h, html, render, useContext, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { interruptKernel, isInserted } from "./kernel.js";
import { Store } from "./store.js";

const WAITING_MS = 1000; // before a page without a view says that it waits
const ACKNOWLEDGE_MS = 300; // a kernel that can read Stop has answered by then; after that it is interrupted

const LOST = "The kernel has ended: run the notebook again, from its first cell. famnb.calls() lists what was answered, famnb.Inspector(call_id) shows it.";

/**
 * @typedef {object} ToolState what a component can ask of its tool
 * @property {import("./outbox.js").Outbox} outbox takes intents
 * @property {boolean} isLost whether the kernel has ended: nothing can be done but reading and copying
 * @property {boolean} isNew whether another tool has opened it just now
 * @property {HTMLElement} root the tool's element
 * @property {any} model the widget's, for its traits
 * @property {Set<() => void>} followers called after each message, once it is shown
 */

// What stands in HTML of Python, outside the tree of a tool, asks nothing but this.
const ToolContext = createContext(/** @type {ToolState} */ (/** @type {unknown} */ ({ isLost: false })));

/** Returns the tool that a component belongs to; the component is rendered again when what is pending changes. */
export const useTool = () => useContext(ToolContext);

/** Returns a component that is rendered only if one of its props is another object. @param {(props: any) => unknown} draw */
export function memo(draw) {
  return class extends Component {
    shouldComponentUpdate(props) {
      const names = Object.keys({ ...this.props, ...props });
      return names.some((name) => props[name] !== this.props[name]);
    }

    render(props) {
      return h(draw, props);
    }
  };
}

/**
 * Keeps a box scrolled to its end, unless the reader scrolled up; `follow(true)` goes there wherever the reader is.
 * @param {{current: HTMLElement}} ref @returns {(always?: boolean) => void}
 */
export function useFollowEnd(ref) {
  const { followers } = useTool();
  const position = useRef({ isNearEnd: true, top: 0 }).current;
  const follow = (always = false) => {
    const box = ref.current;
    if (!box) return;
    const update = () => (position.isNearEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 24);
    if (box.scrollTop < position.top) update(); // the reader has scrolled up
    if (!position.isNearEnd && !always) {
      if (!update()) return; // unless the reader has come back
    }
    position.isNearEnd = true;
    box.scrollTop = 1e7; // beyond every end; reading scrollHeight here would lay the page out once more
    position.top = box.scrollTop;
  };
  useEffect(() => {
    const listener = () => follow();
    followers.add(listener);
    return () => followers.delete(listener);
  }, []);
  return follow;
}

/** Returns the width of an element in pixels, or of the tool; 0 until it is shown. @param {{current: Element}} [ref] */
export function useWidth(ref) {
  const { root } = useTool();
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = ref?.current ?? root;
    const update = (value) => value && setWidth(value);
    // In the next frame: what changes its height in this one makes the browser report an error.
    const observer = new ResizeObserver(([{ contentRect }]) => requestAnimationFrame(() => update(contentRect.width)));
    observer.observe(element);
    update(element.getBoundingClientRect().width);
    return () => observer.disconnect();
  }, []);
  return width;
}

/**
 * Returns a value of the view and a function that shows another one in its place until an intent was answered. Without a
 * kernel it stays, so that what was written can be copied.
 * @template T
 * @param {T} value of the view
 * @returns {[T, (next: T, answer: Promise<import("./outbox.js").Answer>) => void]}
 */
export function useHeld(value) {
  const { outbox } = useTool();
  const [held, setHeld] = useState(/** @type {{value: T} | null} */ (null));
  const latest = useRef(0);
  const hold = (next, answer) => {
    const edition = (latest.current += 1);
    setHeld({ value: next });
    answer.then(() => {
      if (latest.current === edition && outbox.isOpen) setHeld(null);
    });
  };
  return [held ? held.value : value, hold];
}

/**
 * Returns the text of a control, what to call with each edit, and the function of `useHeld`: what is typed counts until
 * the kernel has answered it.
 * @param {string} value of the view @param {string} intent @param {(text: string) => object} makeArgs @param {string} [key]
 * @returns {[string, (text: string) => void, (text: string, answer: Promise<import("./outbox.js").Answer>) => void]}
 */
export function useTyped(value, intent, makeArgs, key = "") {
  const { outbox } = useTool();
  const [text, hold] = useHeld(value);
  return [text, (next) => hold(next, outbox.later(intent, makeArgs(next), key)), hold];
}

/** Brings a tool that another one has opened into view, and gives an element the focus, once there is one. @param {() => HTMLElement | null} find */
export function useArrival(find) {
  const { isNew, root } = useTool();
  useEffect(() => {
    requestAnimationFrame(() => {
      if (!isNew && !isInserted(root)) return;
      find()?.focus();
      root.scrollIntoView({ block: "nearest" });
    });
  }, [isNew]);
}

/** Calls `stop` when Esc is pressed in the tool while it `isBusy`, unless what has the focus takes it for itself. */
export function useEscape(isBusy, stop) {
  const { root } = useTool();
  useEffect(() => {
    if (!isBusy) return undefined;
    const listener = (event) => {
      if (event.key !== "Escape" || event.defaultPrevented) return;
      event.preventDefault();
      event.stopPropagation();
      stop();
    };
    root.addEventListener("keydown", listener);
    return () => root.removeEventListener("keydown", listener);
  });
}

/**
 * Returns a function that sends the intent `stop` for a pane, or for all that runs; a kernel that does not answer, since a
 * cell blocks it, is interrupted through its server. What could not be done is `trouble`.
 * @returns {{stop: (pane?: string) => void, trouble: string}}
 */
export function useStop() {
  const { model, outbox } = useTool();
  const [trouble, setTrouble] = useState("");
  const stop = (pane = "") => {
    let isAnswered = false;
    outbox.press("stop", pane ? { pane } : {}, pane).then(() => (isAnswered = true));
    setTimeout(() => {
      if (isAnswered || !model.get("blocking")) return;
      interruptKernel(model.get("kernel_id")).catch((error) => {
        setTrouble(`The kernel is busy and could not be interrupted from here (${error.message}): press the notebook's stop button.`);
      });
    }, ACKNOWLEDGE_MS);
  };
  return { stop, trouble };
}

// What a page says of its kernel; nothing while all is well.
function Banner({ store }) {
  const [isSilent, setSilent] = useState(false);
  const hasView = Boolean(store.view);
  useEffect(() => {
    if (hasView) return undefined;
    const timer = setTimeout(() => setSilent(true), WAITING_MS);
    return () => clearTimeout(timer);
  }, [hasView]);
  const text = store.isLost ? LOST : hasView || !isSilent ? "" : "Waiting for the kernel … If it does not answer, run the notebook again.";
  return html`<p class="famnb-banner" role="alert" hidden=${!text}>${text}</p>`;
}

// Else the notebook takes arrows, Enter and single letters as commands; it asks the element, not its parents. Not where one
// writes: there it takes none of them, and in an element that is marked so it drops Shift+Enter.
function keepKeys({ target }) {
  if (!target.matches("textarea")) target.dataset.lmSuppressShortcuts = "true";
}

/**
 * Returns the front end of a tool, as anywidget wants it.
 * @param {string} name what the tool is called
 * @param {(props: {view: any}) => unknown} View draws it
 * @param {string} [className] of the tool's element, beside "famnb"
 */
export function defineTool(name, View, className = "") {
  return () => {
    /** @type {Store} */
    let store;
    return {
      initialize({ model }) {
        store = new Store(model);
      },
      render({ el }) {
        const draw = () => {
          el.classList.toggle("famnb-lost", store.isLost);
          // Another object each time, so that whatever uses it sees what is pending.
          const { model, outbox, isLost, isNew, followers } = store;
          const context = { model, outbox, isLost, isNew, followers, root: el };
          render(
            html`<${ToolContext.Provider} value=${context}>
              <${Banner} store=${store} />
              ${store.view && html`<div role="group" aria-label=${name}><${View} view=${store.view} /></div>`}
              <p class="famnb-error" role="alert">${store.error}</p>
            <//>`,
            el,
          );
          if (store.view) store.isNew = false;
        };
        el.classList.add("famnb", ...className.split(" ").filter(Boolean));
        el.addEventListener("focusin", keepKeys);
        const unlisten = store.listen(draw);
        draw();
        return () => {
          unlisten();
          store.outbox.flush();
          el.removeEventListener("focusin", keepKeys);
          render(null, el);
        };
      },
    };
  };
}
