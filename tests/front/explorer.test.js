// What an explorer's page computes by itself: the point under the pointer, the ticks of an axis, what is said of a point.

import assert from "node:assert/strict";
import test from "node:test";

import { readFacts } from "../../famnb/widget/front/parts/facts.js";
import { indexPlaces } from "../../famnb/widget/front/parts/nearest.js";
import { axisLimits, axisTicks, bulkLimits } from "../../famnb/widget/front/parts/ticks.js";

const AXIS = { label: "", kind: /** @type {any} */ ("number"), offset: 0, names: [], isComputed: false, isLog: false };

test("the index finds the nearest place within reach, the last of equals", () => {
  const numbers = Array.from({ length: 4000 }, (_, index) => Math.imul(index + 1, 2654435761) >>> 0);
  const xs = Float32Array.from(numbers.slice(0, 2000), (number) => number % 300);
  const ys = Float32Array.from(numbers.slice(2000), (number) => number % 200);
  const find = indexPlaces(xs, ys, 300, 200);
  for (let look = 0; look < 200; look += 1) {
    const [x, y] = [(look * 37.3) % 300, (look * 23.7) % 200];
    const distances = Array.from(xs, (left, index) => (left - x) ** 2 + (ys[index] - y) ** 2);
    const least = Math.min(...distances);
    assert.equal(find(x, y, 14), least < 14 ** 2 ? distances.lastIndexOf(least) : -1);
  }
});

test("nothing is found beyond reach, and never what is hidden", () => {
  const find = indexPlaces(Float32Array.of(10, NaN), Float32Array.of(10, NaN), 300, 200);
  assert.deepEqual([find(10, 20, 14), find(10, 25, 14)], [0, -1]);
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

test("a point is said by its words and numbers, and what is missing is left out", () => {
  const bytes = (/** @type {ArrayBufferView} */ { buffer }) => new DataView(/** @type {ArrayBuffer} */ (buffer));
  const text = (/** @type {string} */ words) => bytes(new TextEncoder().encode(words));
  const none = new DataView(new ArrayBuffer(0));
  const plain = { words: none, unit: "", marks: [], markCodes: none };
  const describe = readFacts(
    [
      { ...plain, name: "status", role: "title", kind: "words", values: bytes(Uint8Array.of(0, 1)), words: text("failed\n") },
      { ...plain, name: "cost", role: "fact", kind: "number", unit: "USD", values: bytes(Float32Array.of(0.25, 9)), marks: ["", "at most "], markCodes: bytes(Uint8Array.of(0, 1)) },
      { ...plain, name: "first token", role: "fact", kind: "number", unit: "s", values: bytes(Float32Array.of(0.25, NaN)) },
    ],
    2,
  );
  assert.deepEqual(describe(0), { title: "failed", text: "", facts: [["cost", "$0.25"], ["first token", "250 ms"]] });
  assert.deepEqual(describe(1), { title: "", text: "", facts: [["cost", "at most $9.00"]] });
});
