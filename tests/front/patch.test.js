// How a page applies the deltas of view.py.

import assert from "node:assert/strict";
import test from "node:test";

import { applyDelta, reviveValue } from "../../famnb/widget/front/runtime/patch.js";

const same = (value) => value;
const VIEW = { title: "a", panes: [{ key: "x", text: "1" }, { key: "y", text: "2" }], sizes: [1, 2] };

test("a field is replaced, and what is not named stays the same object", () => {
  const next = applyDelta(VIEW, { title: ["b"] }, same);
  assert.equal(next.title, "b");
  assert.equal(next.panes, VIEW.panes);
  assert.equal(VIEW.title, "a");
});

test("one item of a keyed list changes, the others stay the same objects", () => {
  const next = applyDelta(VIEW, { panes: { y: { text: ["3"] } } }, same);
  assert.deepEqual(next.panes, [{ key: "x", text: "1" }, { key: "y", text: "3" }]);
  assert.equal(next.panes[0], VIEW.panes[0]);
});

test("items come, go and move by the order of their keys", () => {
  const next = applyDelta(VIEW, { panes: { $: ["z", "y"], z: [{ key: "z", text: "" }] } }, same);
  assert.deepEqual(next.panes.map(({ key }) => key), ["z", "y"]);
  assert.equal(next.panes[1], VIEW.panes[1]);
});

test("growing values and binary parts are put where the view refers to them", () => {
  const data = new DataView(new ArrayBuffer(1));
  const value = reviveValue({ rows: [{ body: { $growing: "7" } }], points: { $bytes: 0 } }, (id) => ({ id }), [data]);
  assert.deepEqual(value.rows, [{ body: { id: "7" } }]);
  assert.equal(value.points, data);
});
