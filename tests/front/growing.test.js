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

test("a text is appended to a plain text and to a tail", () => {
  assert.equal(grow("a", "b"), "ab");
  assert.deepEqual(grow({ html: "", tail: "a" }, "b", [["text", "c"]]), { html: "", tail: "abc" });
});

test("a draft begins with what is named of the one before", () => {
  const value = grow({ html: "", tail: "" }, [["draft", 0, "<p>on</p>", "on"]], [["draft", 5, "e</p>", "e"]]);
  assert.deepEqual(value, { html: "", tail: "one", draft: "<p>one</p>" });
});

test("freezing takes the draft's beginning and drops the draft", () => {
  const value = grow({ html: "<h1>", tail: "a" }, [["draft", 0, "<p>a</p>", ""]], [["freeze", 4, "!</p>", "b"]]);
  assert.deepEqual(value, { html: "<h1><p>a!</p>", tail: "b" });
});

test("paragraphs without markup are made of the tail, escaped", () => {
  const { html, tail } = grow({ html: "", tail: "1 < 2\n\nnext" }, [["paragraphs", 7]]);
  assert.equal(html, '<p dir="auto" style="text-align:start">1 &lt; 2</p>\n');
  assert.equal(tail, "next");
});

test("listeners get each change, and null for a new whole", () => {
  const growing = new Growing("1");
  const changes = [];
  const unlisten = growing.listen((change) => changes.push(change));
  growing.set("a");
  growing.add("b");
  unlisten();
  growing.add("c");
  assert.deepEqual(changes, [null, "b"]);
});
