import assert from "node:assert/strict";
import test from "node:test";
import { cutMiddle, shortenNames } from "../../famnb/widget/front/parts/names.js";

test("names leave out the parts that all begin with, and stay different", () => {
  const names = ["messages · fam-2-5-pro · temperature=0.1", "messages · fam-2-5-pro · temperature=0.9"];
  assert.deepEqual(shortenNames(names, 20), ["temperature=0.1", "temperature=0.9"]);
  assert.deepEqual(shortenNames(["messages", "messages (2)"], 20), ["messages", "messages (2)"]);
  assert.deepEqual(shortenNames(["only · one"], 20), ["only · one"]);
});

test("a name that is too long keeps its beginning and more of its end", () => {
  assert.equal(cutMiddle("a-model-of-which-there-are-two-1", 13), "a-mo…re-two-1");
  assert.equal(cutMiddle("short", 13), "short");
});
