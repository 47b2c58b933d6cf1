// What the user edits, on its way to the kernel: a text that is being typed is sent when the typing pauses.
//
//   edited ── waiting ── sent ── underway ── answered: what the kernel says of it counts again

const PAUSE_MS = 200;

/** Whether the kernel says `taken` to a message of a form's: to all that it carries out (live_view.py: FormWidget). */
export const isTaken = ({ kind }) => kind !== "copy";

/**
 * @param {(message: object) => void} send
 * @param {(message: object) => boolean} isAnswered whether the kernel answers a message, in their order
 */
export function makeOutbox(send, isAnswered = () => false) {
  const waiting = new Map();
  const underway = []; // the names of messages that were sent and not answered yet, "" for one without a name
  let isOpen = true;
  const deliver = (message, name = "") => {
    if (!isOpen) return;
    send(message);
    if (isAnswered(message)) underway.push(name);
  };
  const flush = () => {
    for (const [name, { timer, message }] of waiting) {
      clearTimeout(timer);
      deliver(message, name);
    }
    waiting.clear();
  };
  return {
    /** Sends a message when nothing of the same name has followed it for a moment. */
    later: (name, message) => {
      clearTimeout(waiting.get(name)?.timer);
      const post = () => {
        waiting.delete(name);
        deliver(message, name);
      };
      waiting.set(name, { message, timer: setTimeout(post, PAUSE_MS) });
    },
    /** Sends what waits, and then a message: in the order in which the user acted. */
    now: (message, name) => {
      flush();
      deliver(message, name);
    },
    flush,
    /** Sends nothing any more: the kernel has ended, and a host may throw an error. */
    close: () => {
      isOpen = false;
    },
    /** The kernel has answered the oldest of the messages that it had not answered. */
    answered: () => {
      underway.shift();
    },
    /** What the kernel says from now on knows of all that was sent: an answer may have been lost on the way. */
    forget: () => {
      underway.length = 0;
    },
    /** Whether what the kernel says may not know of an edit of that name: it was not sent, or not answered yet. */
    holds: (name) => waiting.has(name) || underway.includes(name),
  };
}
