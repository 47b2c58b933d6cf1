// The axes of a scatter plot: from where to where they go, and what is written beside them.

import { writeMetric, writeTime } from "./facts.js";

const DAY_S = 86_400;
const YEAR_S = 364 * DAY_S; // in whole weeks
const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200];
STEPS_S.push(...[1, 2, 7, 14, 28, 91, 182].map((days) => days * DAY_S), YEAR_S);

/**
 * @typedef {import("../protocol.js").AxisView} AxisView
 * @typedef {[number, number]} Span
 * @typedef {[number, string]} Tick a value, and how it is written
 */

/** @param {Span} limits @param {number} count @returns {Tick[]} */
function numberTicks([low, high], count) {
  const least = (high - low) / count;
  const unit = 10 ** Math.floor(Math.log10(least));
  const step = unit * ([1, 2, 5].find((factor) => factor * unit >= least * 0.999) ?? 10);
  const digits = Math.min(Math.max(-Math.floor(Math.log10(step) + 1e-9), 0), 12);
  const options = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  const ticks = /** @type {Tick[]} */ ([]);
  // Plus 0, since the first index may be -0.
  for (let index = Math.ceil(low / step - 1e-9) + 0; index * step <= high + step * 1e-9; index += 1) {
    ticks.push([index * step, (index * step).toLocaleString("en", options)]);
  }
  return ticks;
}

/** In UTC, as all figures. @param {Span} limits @param {number} count @returns {Tick[]} */
function timeTicks([low, high], count) {
  const step = STEPS_S.find((size) => size * count >= high - low) ?? YEAR_S * Math.ceil((high - low) / count / YEAR_S);
  const ticks = /** @type {Tick[]} */ ([]);
  for (let seconds = Math.ceil(low / step) * step; seconds <= high; seconds += step) {
    const moment = new Date(seconds * 1000);
    const day = moment.toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
    const clock = moment.toISOString().slice(11, step >= 60 ? 16 : 19);
    const isDay = seconds % DAY_S === 0;
    ticks.push([seconds, isDay ? day : ticks.length ? clock : `${day} ${clock}`]);
  }
  return ticks;
}

/**
 * Returns about as many ticks of an axis between two of its values.
 * @param {AxisView} axis @param {Span} limits @param {number} count @returns {Tick[]}
 */
export function axisTicks({ kind, names, offset }, [low, high], count) {
  if (kind === "names") return names.map((name, index) => /** @type {Tick} */ ([index, name])).filter(([index]) => index >= low && index <= high);
  const ticks = (kind === "time" ? timeTicks : numberTicks)([low + offset, high + offset], count);
  return ticks.map(([value, text]) => [value - offset, text]);
}

/** Returns a value of an axis in words. @param {AxisView} axis @param {number} value */
export function writeValue({ kind, names, offset }, value) {
  if (kind === "names") return names[Math.round(value)];
  return kind === "time" ? writeTime(value + offset) : writeMetric("", value);
}

/** Returns the ends of an axis that show all values. @param {AxisView} axis @param {Float32Array} values @returns {Span} */
export function axisLimits({ kind, names }, values) {
  if (kind === "names") return [-0.5, names.length - 0.5];
  const low = values.reduce((least, value) => Math.min(least, value), Infinity);
  const high = values.reduce((most, value) => Math.max(most, value), -Infinity);
  const isZeroNear = kind === "number" && low >= 0 && low < high / 2;
  const room = (high - low) * 0.03 || Math.abs(high) * 0.1 || 0.5;
  return [isZeroNear ? 0 : low - room, high + room];
}
