// Where the bars and lines of a chart lie.

import assert from "node:assert/strict";
import test from "node:test";

import { stackBars, traceLine } from "../../famnb/widget/front/parts/chart.js";

test("bars stand on one another in proportion, and there is none where there is nothing", () => {
  const chart = { key: "calls", kind: /** @type {const} */ ("bars"), top: 4, ticks: [], words: [], values: [[1, 0], [2, null]] };
  const [low, high] = stackBars(chart, 50);
  assert.equal(stackBars(chart, 50).length, 2);
  assert.equal(low.x, high.x);
  assert.equal(high.height, 2 * low.height);
  assert.equal(high.y + high.height, low.y);
});

test("a line has a gap where nothing is known, and a point for each value", () => {
  const { path, points } = traceLine([1, 2, null, 3], 4, 50);
  assert.equal(path.replace(/[^ML]/g, ""), "MLM");
  assert.equal(points.length, 3);
});
