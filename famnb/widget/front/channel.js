// The messages of a kernel to one model. They are numbered, so that a page that is new, or that misses one, asks for all.
//
//   message ── number as expected? ──┬── yes: heard
//                                    └── a gap: "ready", which is answered by a snapshot

const PAGE = globalThis.crypto?.randomUUID?.() ?? String(Math.random()); // tells a reloaded page from the first one
// Changes come up to 22 times a second: without a pause each would ask for a whole snapshot again.
const ASK_AGAIN_MS = 1000;

/**
 * Sends a message; calls `lose` where that throws an error, as Jupyter's models do once their kernel was shut down: nothing
 * tells them so before, other than of a restart.
 * @param {object} model @param {object} message @param {() => void} lose
 */
export function deliver(model, message, lose) {
  try {
    model.send(message);
  } catch (error) {
    console.warn("famnb: the kernel cannot be reached", error);
    lose();
  }
}

/**
 * Listens to a model; a message without a number is heard as it comes. Parts that are bytes are DataViews.
 * @param {object} model
 * @param {{hear: (message: object) => void, lose: () => void}} listener `lose` is called when the kernel has ended
 */
export function openChannel(model, { hear, lose }) {
  let sequence = null; // of the last message that was heard; null: a snapshot is needed
  let asked = 0; // when a snapshot was asked for last

  // Question and answer may both be dropped on the way, so it is asked again for as long as there is news.
  const ask = () => {
    if (asked && performance.now() - asked < ASK_AGAIN_MS) return;
    asked = performance.now();
    deliver(model, { kind: "ready", page: PAGE }, lose);
  };
  model.on("msg:custom", ({ binary = [], ...message }, buffers) => {
    const { kind, seq } = message;
    for (const [index, name] of binary.entries()) message[name] = buffers[index];
    if (seq !== undefined) {
      if (kind !== "snapshot" && (sequence === null || seq !== sequence + 1)) {
        sequence = null;
        ask();
        return;
      }
      sequence = seq;
      if (kind === "snapshot") asked = 0;
    }
    hear(message);
  });
  // Jupyter's models say so when their kernel is gone; others never do.
  model.on("comm_live_update", lose);
  ask();
}
