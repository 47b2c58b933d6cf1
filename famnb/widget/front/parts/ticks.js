// The axes of a scatter plot: from where to where they go, and what is written beside them.

const DAY_S = 86_400;
const MIN_BULK = 8; // of fewer values none is far from the others
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

/** Powers of ten, and where these are few 2 and 5 times them. @param {Span} limits @param {number} count @returns {Tick[]} */
function logTicks([low, high], count) {
  const powers = Math.log10(high / low);
  const factors = powers * 3 <= count ? [1, 2, 5] : [1];
  const every = Math.max(Math.ceil(powers / count), 1);
  const ticks = /** @type {Tick[]} */ ([]);
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += every) {
    for (const value of factors.map((factor) => factor * 10 ** power)) {
      if (value >= low && value <= high) ticks.push([value, value.toLocaleString("en", { maximumSignificantDigits: 3 })]);
    }
  }
  return ticks;
}

/**
 * Returns about as many ticks of an axis between two of its values.
 * @param {AxisView} axis @param {Span} limits @param {number} count @returns {Tick[]}
 */
export function axisTicks({ kind, isLog, names, offset }, [low, high], count) {
  if (isLog) return logTicks([low, high], count);
  if (kind === "names") return names.map((name, index) => /** @type {Tick} */ ([index, name])).filter(([index]) => index >= low && index <= high);
  const ticks = (kind === "time" ? timeTicks : numberTicks)([low + offset, high + offset], count);
  return ticks.map(([value, text]) => [value - offset, text]);
}

/** Returns the ends of an axis that show all values. @param {AxisView} axis @param {Float32Array} values @returns {Span} */
export function axisLimits({ kind, isLog, names }, values) {
  if (kind === "names") return [-0.5, names.length - 0.5];
  if (isLog) {
    const positive = values.filter((value) => value > 0);
    const [least, most] = [Math.min, Math.max].map((pick) => positive.reduce((end, value) => pick(end, value), positive[0] ?? 1));
    return [least / 1.2, most * 1.2];
  }
  const low = values.reduce((least, value) => Math.min(least, value), Infinity);
  const high = values.reduce((most, value) => Math.max(most, value), -Infinity);
  const isZeroNear = kind === "number" && low >= 0 && low < high / 2;
  const room = (high - low) * 0.03 || Math.abs(high) * 0.1 || 0.5;
  return [isZeroNear ? 0 : low - room, high + room];
}

/**
 * Returns the ends of an axis that show all values but far outliers: what is beyond thrice the span of all the others,
 * a hundredth on each side, would press these together.
 * @param {AxisView} axis @param {Float32Array} values @returns {Span}
 */
export function bulkLimits(axis, values) {
  const whole = axisLimits(axis, values);
  if (axis.kind !== "number" || axis.isLog || values.length < MIN_BULK) return whole;
  const ascending = values.filter((value) => !Number.isNaN(value)).sort();
  const beyond = Math.max(Math.floor(ascending.length / 100), 1);
  const [low, high] = [ascending[beyond], ascending[ascending.length - 1 - beyond]];
  const reach = 3 * (high - low);
  if (!reach || (ascending[0] >= low - reach && ascending[ascending.length - 1] <= high + reach)) return whole;
  return axisLimits(axis, ascending.filter((value) => value >= low - reach && value <= high + reach));
}
