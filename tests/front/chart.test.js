// Where the bars of a chart lie.

import assert from "node:assert/strict";
import test from "node:test";

import { stackBars } from "../../famnb/widget/front/parts/chart.js";

test("bars stand on one another in proportion, and there is none where there is nothing", () => {
  const chart = { key: "calls", kind: /** @type {const} */ ("bars"), top: 4, ticks: [], words: [], values: [[1, 0], [2, null]] };
  const [low, high] = stackBars(chart);
  assert.equal(stackBars(chart).length, 2);
  assert.equal(low.x, high.x);
  assert.equal(high.height, 2 * low.height);
  assert.equal(high.y + high.height, low.y);
});
