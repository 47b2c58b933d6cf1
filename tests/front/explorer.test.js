// What an explorer's page computes by itself: the point under the pointer.

import assert from "node:assert/strict";
import test from "node:test";

import { findNearest } from "../../famnb/widget/front/parts/scatter.js";

test("the nearest place within reach is found, the last of equals, and never one that is not shown", () => {
  const places = { xs: Float32Array.of(0.1, NaN, 0.12, 0.12), ys: Float32Array.of(0.1, NaN, 0.1, 0.1) };
  const find = (/** @type {[number, number]} */ place) => findNearest(places, place, [100, 200], 4);
  assert.deepEqual([find([0.1, 0.11]), find([0.12, 0.1]), find([0.1, 0.13])], [0, 3, -1]);
});
