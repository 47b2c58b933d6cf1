// The facts of each point of an explorer, from arrays: a fact is read and written when it is looked at.

/**
 * @typedef {import("../protocol.js").FactView} FactView
 * @typedef {{title: string, text: string, facts: [string, string][]}} PointFacts
 */

/**
 * Returns numbers that came as bytes.
 * @template T
 * @param {{new (buffer: ArrayBuffer): T}} Kind of array @param {DataView} bytes @returns {T}
 */
export function readNumbers(Kind, { buffer, byteOffset, byteLength }) {
  // A copy, since a part of a message may lie where no array of numbers can begin.
  return new Kind(/** @type {ArrayBuffer} */ (buffer.slice(byteOffset, byteOffset + byteLength)));
}

const group = (value, digits = 0) => value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });

function writeDuration(seconds) {
  if (seconds < 0) return `−${writeDuration(-seconds)}`;
  if (seconds < 0.995) {
    const ms = seconds * 1000;
    return !ms ? "0 s" : `${ms >= 9.95 ? ms.toFixed(0) : Number(ms.toPrecision(2))} ms`;
  }
  if (seconds < 90) return `${seconds.toFixed(seconds < 9.995 ? 2 : 1)} s`;
  return seconds < 5400 ? `${(seconds / 60).toFixed(1)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

function writeUsd(amount) {
  if (amount < 0) return `−${writeUsd(-amount)}`;
  if (!amount || amount >= 1) return `$${group(amount, 2)}`;
  const digits = amount.toFixed(Math.min(2 - Math.floor(Math.log10(amount)), 100)).replace(/0+$/, "");
  return digits.length >= 4 ? `$${digits}` : `$${amount.toFixed(2)}`;
}

/** Returns a value in its unit, as `labels.format_metric` writes it. @param {string} unit @param {number} value */
export function writeMetric(unit, value) {
  if (unit === "s") return writeDuration(value);
  if (unit === "s/token") return `${writeDuration(value)}/token`;
  if (unit === "USD") return writeUsd(value);
  const sign = value < 0 ? "−" : "";
  const size = Math.abs(value);
  const isCount = ["tokens", "characters", "requests"].includes(unit);
  if (isCount || size >= 99.95) return sign + group(size);
  const digits = Number(size.toPrecision(3));
  // Python writes 3.3e-05, and from 0.0001 on no exponent.
  return sign + (size && size < 1e-4 ? digits.toExponential().replace(/-(\d)$/, "-0$1") : String(digits));
}

/** Returns a time in words. @param {number} seconds since 1970 */
export const writeTime = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ");

/** Returns a function that says one fact of a point, "" where it is missing. @param {FactView} fact @param {number} count */
function factReader({ kind, unit, marks, values, words, markCodes }, count) {
  if (kind === "words") {
    const codes = readNumbers({ 1: Uint8Array, 2: Uint16Array, 4: Uint32Array }[values.byteLength / count], values);
    const texts = new TextDecoder().decode(words).split("\n");
    return (index) => texts[codes[index]];
  }
  const numbers = kind === "time" ? readNumbers(Float64Array, values) : readNumbers(Float32Array, values);
  const markOf = (index) => (marks.length ? marks[markCodes.getUint8(index)] : "");
  const write = (index) => (kind === "time" ? writeTime(numbers[index]) : markOf(index) + writeMetric(unit, numbers[index]));
  return (index) => (Number.isNaN(numbers[index]) ? "" : write(index));
}

/**
 * Returns a function that says all of a point.
 * @param {FactView[]} facts @param {number} count of the points
 * @returns {(index: number) => PointFacts}
 */
export function readFacts(facts, count) {
  const readers = facts.map((fact) => ({ ...fact, read: factReader(fact, count) }));
  const read = (role, index) =>
    readers.flatMap(({ name, role: other, read: readFact }) => {
      const value = role === other && readFact(index);
      return value ? [/** @type {[string, string]} */ ([name, value])] : [];
    });
  return (index) => ({
    title: read("title", index).map(([, value]) => value).join(" · "),
    text: read("text", index)[0]?.[1] ?? "",
    facts: read("fact", index),
  });
}
