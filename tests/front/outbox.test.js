// Intents on their way to the kernel.

import assert from "node:assert/strict";
import test from "node:test";

import { Outbox } from "../../famnb/widget/front/runtime/outbox.js";

const open = (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const sent = [];
  return { sent, outbox: new Outbox((message) => sent.push(message)) };
};

test("what is pressed twice before it is answered is sent once", async (t) => {
  const { sent, outbox } = open(t);
  const first = outbox.press("send");
  assert.deepEqual(await outbox.press("send"), { ok: false });
  assert.equal(sent.length, 1);
  outbox.answer({ id: sent[0].id, ok: true, value: 5 });
  assert.deepEqual(await first, { ok: true, value: 5, isUnknown: false });
  assert.equal(outbox.isPending("send"), false);
});

test("typing is sent once it pauses, and only the last text", (t) => {
  const { sent, outbox } = open(t);
  outbox.later("edit", { text: "a" }, "prompt");
  outbox.later("edit", { text: "ab" }, "prompt");
  assert.equal(sent.length, 0);
  assert.equal(outbox.isPending("edit", "prompt"), true);
  t.mock.timers.tick(200);
  assert.deepEqual(sent.map(({ args }) => args), [{ text: "ab" }]);
});

test("what waits is sent before what follows it", (t) => {
  const { sent, outbox } = open(t);
  outbox.later("edit", { text: "a" });
  outbox.send("submit");
  assert.deepEqual(sent.map(({ name }) => name), ["edit", "submit"]);
});

test("an answer that was lost is not waited for, one that is to come is, and a closed outbox sends nothing", async (t) => {
  const { sent, outbox } = open(t);
  const lost = outbox.send("submit");
  const next = outbox.send("read_code");
  outbox.forget(1);
  assert.deepEqual(await lost, { ok: false, value: undefined, isUnknown: true });
  outbox.answer({ id: 2, ok: true, value: "code" });
  assert.deepEqual(await next, { ok: true, value: "code", isUnknown: false });
  outbox.close();
  assert.deepEqual(await outbox.send("submit"), { ok: false });
  assert.equal(sent.length, 2);
});
