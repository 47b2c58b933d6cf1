// What is said of each point of an explorer, from arrays: a fact is read and written when it is looked at.

/** Returns numbers that came as bytes. @param {Function} Kind of array @param {DataView} part */
export function readNumbers(Kind, { buffer, byteOffset, byteLength }) {
  // A copy, since a part of a message may lie where no array of numbers can begin.
  return new Kind(buffer.slice(byteOffset, byteOffset + byteLength));
}

const grouped = (value, digits = 0) => value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });

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
  if (!amount || amount >= 1) return `$${grouped(amount, 2)}`;
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
  if (isCount || size >= 99.95) return sign + grouped(size);
  const digits = Number(size.toPrecision(3));
  // Python writes 3.3e-05, and from 0.0001 on no exponent.
  return sign + (size && size < 1e-4 ? digits.toExponential().replace(/-(\d)$/, "-0$1") : String(digits));
}

/** Returns a time in words. @param {number} seconds since 1970 */
export const writeTime = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ");

/** Returns a function that says one fact of a point, "" where it is missing. @param {object} fact @param {object} parts */
function factReader({ kind, number, unit, marks, width }, parts) {
  const Words = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array }[width];
  const values = readNumbers({ words: Words, time: Float64Array, number: Float32Array }[kind], parts[`values${number}`]);
  if (kind === "words") {
    const words = new TextDecoder().decode(parts[`words${number}`]).split("\n");
    return (index) => words[values[index]];
  }
  const marked = marks && readNumbers(Uint8Array, parts[`marks${number}`]);
  const write = kind === "time" ? writeTime : (value, index) => (marked ? marks[marked[index]] : "") + writeMetric(unit, value);
  return (index) => (Number.isNaN(values[index]) ? "" : write(values[index], index));
}

/**
 * Returns a function that says all of a point.
 * @param {{facts: object[]}} parts of a message: the facts as explorer.py describes them, and their values by name
 * @returns {(index: number) => {title: string, text: string, facts: [string, string][]}}
 */
export function readFacts(parts) {
  const readers = parts.facts.map((fact) => ({ ...fact, read: factReader(fact, parts) }));
  const sayAll = (role, index) => readers.filter((reader) => reader.role === role).map(({ name, read }) => [name, read(index)]).filter(([, value]) => value);
  return (index) => ({
    title: sayAll("title", index).map(([, value]) => value).join(" · "),
    text: sayAll("text", index)[0]?.[1] ?? "",
    facts: sayAll("fact", index),
  });
}
