import assert from "node:assert/strict";
import test from "node:test";
import { shortenNames } from "../../famnb/widget/front/parts/names.js";

test("names leave out the parts that all begin with, and stay different", () => {
  const names = ["messages · fam-2-5-pro · temperature=0.1", "messages · fam-2-5-pro · temperature=0.9"];
  assert.deepEqual(shortenNames(names), ["temperature=0.1", "temperature=0.9"]);
  assert.deepEqual(shortenNames(["messages", "messages (2)"]), ["messages", "messages (2)"]);
  assert.deepEqual(shortenNames(["only · one"]), ["only · one"]);
});
