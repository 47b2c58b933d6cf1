// What the user edits, on its way to the kernel: a text that is being typed is sent when the typing pauses.

const PAUSE_MS = 200;

/**
 * @param {(message: object) => void} send
 */
export function makeOutbox(send) {
  const waiting = new Map();
  let isOpen = true;
  const deliver = (message) => {
    if (isOpen) send(message);
  };
  const flush = () => {
    for (const [, { timer, message }] of waiting) {
      clearTimeout(timer);
      deliver(message);
    }
    waiting.clear();
  };
  return {
    /** Sends a message when nothing of the same name has followed it for a moment. */
    later: (name, message) => {
      clearTimeout(waiting.get(name)?.timer);
      const post = () => {
        waiting.delete(name);
        deliver(message);
      };
      waiting.set(name, { message, timer: setTimeout(post, PAUSE_MS) });
    },
    /** Sends what waits, and then a message: in the order in which the user acted. */
    now: (message) => {
      flush();
      deliver(message);
    },
    flush,
    /** Sends nothing any more: the kernel has ended, and a host may throw an error. */
    close: () => {
      isOpen = false;
    },
    /** Whether an edit of that name was not sent yet. */
    holds: (name) => waiting.has(name),
  };
}
