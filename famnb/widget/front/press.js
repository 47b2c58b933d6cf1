// What is drawn anew or moves between the press and the release of a mouse or key is never clicked: what would draw waits.

const PRESSED = "button, summary, a, [role=button], .famnb-rows tr"; // what does something on a click; who writes holds nothing up
const LONGEST_MS = 2000; // a release that never came, such as outside the window, holds nothing up for longer

/**
 * Returns a listener to messages that hands them on to `hear`, in order, once no button is pressed.
 * @param {(message: object) => void} hear
 * @returns {{hear: (message: object) => void, watch: (el: HTMLElement) => () => void}} `watch` looks for presses in an
 *   element until what it returns is called
 */
export function waitForRelease(hear) {
  const waiting = [];
  let isPressed = false;
  let limit = 0;

  const resume = () => {
    clearTimeout(limit);
    isPressed = false;
    for (const message of waiting.splice(0)) hear(message);
  };
  const press = ({ type, key, target }) => {
    if ((type === "keydown" && key !== " ") || !target.closest(PRESSED)) return;
    isPressed = true;
    clearTimeout(limit);
    limit = setTimeout(resume, LONGEST_MS);
  };
  const release = ({ type, target }) => {
    if (!isPressed) return;
    if (type === "blur" && target !== window) return; // the press itself moves the focus; only the window's loss counts
    setTimeout(resume); // the click comes right after the release
  };
  return {
    hear: (message) => (isPressed ? waiting.push(message) : hear(message)),
    watch(el) {
      const listeners = [
        ...["pointerdown", "keydown"].map((name) => [el, name, press]),
        ...["pointerup", "pointercancel", "keyup", "blur"].map((name) => [window, name, release]),
      ];
      for (const [on, name, listener] of listeners) on.addEventListener(name, listener, true);
      return () => {
        for (const [on, name, listener] of listeners) on.removeEventListener(name, listener, true);
        resume();
      };
    },
  };
}
