// What an explorer's page computes by itself: the point under the pointer, and the ticks of an axis.

import assert from "node:assert/strict";
import test from "node:test";

import { findNearest } from "../../famnb/widget/front/parts/points.js";
import { axisLimits, axisTicks, bulkLimits } from "../../famnb/widget/front/parts/ticks.js";

const AXIS = { label: "", kind: /** @type {any} */ ("number"), offset: 0, names: [], isLog: false };

test("the nearest place within reach is found, the last of equals, and never what is hidden or outside", () => {
  const places = { xs: Float32Array.of(10, NaN, 12, 12, 400), ys: Float32Array.of(10, 10, 10, 10, 10) };
  const layout = /** @type {any} */ ({ width: 300, height: 200 });
  const find = (/** @type {[number, number]} */ place) => findNearest(places, layout, place, 14);
  assert.deepEqual([find([10, 20]), find([12, 10]), find([10, 25]), find([399, 10])], [0, 3, -1, -1]);
});

test("ticks are round numbers, times of the clock, or names", () => {
  assert.deepEqual(axisTicks(AXIS, [0, 1], 5), [[0, "0.0"], [0.2, "0.2"], [0.4, "0.4"], [0.6000000000000001, "0.6"], [0.8, "0.8"], [1, "1.0"]]);
  const noon = Date.UTC(2026, 2, 5, 12) / 1000;
  assert.deepEqual(axisTicks({ ...AXIS, kind: "time", offset: noon }, [0, 7200], 2), [[0, "5 Mar 12:00"], [3600, "13:00"], [7200, "14:00"]]);
  assert.deepEqual(axisTicks({ ...AXIS, kind: "names", names: ["a", "b"] }, [0.5, 1.5], 5), [[1, "b"]]);
});

test("an axis begins at zero where that is near, and has room at its ends", () => {
  assert.deepEqual(axisLimits(AXIS, Float32Array.of(1, 100)), [0, 102.97]);
  assert.deepEqual(axisLimits(AXIS, Float32Array.of(100, 110)), [99.7, 110.3]);
  assert.deepEqual(axisLimits({ ...AXIS, kind: "names", names: ["a", "b"] }, Float32Array.of()), [-0.5, 1.5]);
});

test("one outlier does not press all other points together", () => {
  const values = Float32Array.from({ length: 50 }, (_, index) => 10 + index);
  assert.deepEqual(bulkLimits(AXIS, values), axisLimits(AXIS, values));
  values[7] = 9000;
  assert.deepEqual(bulkLimits(AXIS, values), axisLimits(AXIS, values.filter((value) => value < 9000)));
  assert.deepEqual(bulkLimits({ ...AXIS, isLog: true }, values), axisLimits({ ...AXIS, isLog: true }, values));
});

test("a logarithmic axis shows what is above zero, with ticks at 1, 2 and 5 or at powers of ten", () => {
  const axis = { ...AXIS, isLog: true };
  assert.deepEqual(axisLimits(axis, Float32Array.of(0, 12, 100)), [10, 120]);
  assert.deepEqual(axisTicks(axis, [10, 120], 6).map(([value]) => value), [10, 20, 50, 100]);
  assert.deepEqual(axisTicks(axis, [0.5, 2e4], 6).map(([, text]) => text), ["1", "10", "100", "1,000", "10,000"]);
});
