// What the changes of a Markdown text make of it: reply_pane.py has what each means.

import assert from "node:assert/strict";
import test from "node:test";

import { Growing } from "../../famnb/widget/front/runtime/growing.js";

const grow = (whole, ...changes) => {
  const growing = new Growing("1");
  growing.set(whole);
  for (const change of changes) growing.add(change);
  return growing.value;
};

test("a text is appended to the tail, a draft takes the place of the one before, and freezing drops it", () => {
  assert.deepEqual(grow({ html: "", tail: "a" }, "b", [["text", "c"]]), { html: "", tail: "abc" });
  const draft = grow({ html: "", tail: "" }, [["draft", "<p>on</p>", "on"]], [["draft", "<p>one</p>", "e"]]);
  assert.deepEqual(draft, { html: "", tail: "one", draft: "<p>one</p>", draftLength: 3 });
  const frozen = grow({ html: "<h1>", tail: "a" }, [["draft", "<p>a</p>", ""]], [["freeze", "<p>a!</p>", "b"]]);
  assert.deepEqual(frozen, { html: "<h1><p>a!</p>", tail: "b" });
});

test("listeners are called after each change", () => {
  const growing = new Growing("1");
  const tails = [];
  const unlisten = growing.listen(() => tails.push(growing.value.tail));
  growing.set({ html: "", tail: "a" });
  growing.add("b");
  unlisten();
  growing.add("c");
  assert.deepEqual(tails, ["a", "ab"]);
});
