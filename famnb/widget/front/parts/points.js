// Where the points of a scatter plot lie on a page, and how they are painted.

import { axisTicks } from "./ticks.js";

export const HEIGHT = 380;
const EDGES = { left: 14, right: 14, top: 30, bottom: 46 };
const CHUNK = 4096; // points of one group painted before those of the next, so that none hides the others
const LETTER = 6.2; // about as wide as a digit is
const MAX_LETTERS = 28; // of a text beside the vertical axis

/**
 * @typedef {import("./ticks.js").Span} Span
 * @typedef {[number, number]} Place in pixels
 * @typedef {{plot: import("../protocol.js").PlotView, xs: Float32Array, ys: Float32Array, codes: Uint8Array}} Points
 * @typedef {{toPixels: (value: number) => number, toValue: (pixels: number) => number}} Scale
 * @typedef {{left: number, top: number, width: number, height: number, x: Scale, y: Scale,
 *   xTicks: [number, string][], yTicks: [number, string][]}} Layout
 * @typedef {{xs: Float32Array, ys: Float32Array}} Places
 */

/** @param {Span} limits @param {number} length @param {boolean} [isLog] @returns {Scale} */
function makeScale([low, high], length, isLog) {
  if (isLog) {
    const { toPixels, toValue } = makeScale([Math.log(low), Math.log(high)], length);
    return { toPixels: (value) => toPixels(value > 0 ? Math.log(value) : NaN), toValue: (pixels) => Math.exp(toValue(pixels)) };
  }
  return {
    toPixels: (value) => ((value - low) / (high - low)) * length,
    toValue: (pixels) => low + (pixels / length) * (high - low),
  };
}

/** Returns the places of axes and points. @param {Points} points @param {Span[]} limits of x and y @param {number} wide @returns {Layout} */
export function layOut({ plot }, [xLimits, yLimits], wide) {
  const yTicks = axisTicks(plot.y, yLimits, 6).map(([value, text]) => {
    return /** @type {[number, string]} */ ([value, text.length > MAX_LETTERS ? `${text.slice(0, MAX_LETTERS - 1)}…` : text]);
  });
  const left = EDGES.left + LETTER * Math.max(...yTicks.map(([, text]) => text.length), 1);
  const [width, height] = [Math.max(wide - left - EDGES.right, 1), HEIGHT - EDGES.top - EDGES.bottom];
  const [low, high] = yLimits;
  return {
    left,
    top: EDGES.top,
    width,
    height,
    x: makeScale(xLimits, width, plot.x.isLog),
    y: makeScale(plot.y.kind === "names" ? [low, high] : [high, low], height, plot.y.isLog), // pixels count from the top
    xTicks: axisTicks(plot.x, xLimits, Math.max(Math.floor(width / 110), 2)),
    yTicks,
  };
}

/** Returns the ticks of the horizontal axis that there is room to write. @param {Layout} layout @param {number} wide */
export function writtenTicks({ left, x, xTicks }, wide) {
  let free = -Infinity; // from where on there is room
  return xTicks.flatMap(([value, text]) => {
    const half = (text.length * LETTER) / 2;
    const middle = Math.min(Math.max(left + x.toPixels(value), half), wide - half);
    if (middle - half < free) return [];
    free = middle + half + 8;
    return [{ middle, text }];
  });
}

/** Returns where each point is; NaN for one that is hidden. @param {Points} points @param {Layout} layout @param {number[]} hidden groups @returns {Places} */
export function placePoints({ xs, ys, codes }, { x, y }, hidden) {
  const [left, top] = [new Float32Array(xs.length), new Float32Array(xs.length)];
  const isHidden = new Set(hidden);
  for (let index = 0; index < xs.length; index += 1) {
    const isGone = isHidden.has(codes[index]);
    left[index] = isGone ? NaN : x.toPixels(xs[index]);
    top[index] = isGone ? NaN : y.toPixels(ys[index]);
  }
  return { xs: left, ys: top };
}

/**
 * Returns the point nearest to a place of the plot, the last of equals, which is painted on top; -1 if none is within reach.
 * @param {Places} places @param {Layout} layout @param {Place} place @param {number} reach in pixels
 */
export function findNearest({ xs, ys }, { width, height }, [x, y], reach) {
  let nearest = -1;
  let least = reach * reach;
  for (let index = 0; index < xs.length; index += 1) {
    const distance = (xs[index] - x) ** 2 + (ys[index] - y) ** 2;
    if (distance <= least && xs[index] >= 0 && xs[index] <= width && ys[index] >= 0 && ys[index] <= height) {
      least = distance;
      nearest = index;
    }
  }
  return nearest;
}

/** Returns the points that are shown in the order of x and in that of y. @param {Places} places @param {Layout} layout */
export function sortPlaces({ xs, ys }, { width, height }) {
  const isShown = (index) => xs[index] >= 0 && xs[index] <= width && ys[index] >= 0 && ys[index] <= height;
  const shown = Uint32Array.from(xs.keys()).filter(isShown);
  return [xs, ys].map((values) => shown.slice().sort((one, other) => values[one] - values[other] || one - other));
}

/** Paints all points on a canvas. @param {HTMLCanvasElement} canvas @param {Points} points @param {Places} places @param {Layout} layout @param {string} ink the colour of text */
export function paintPoints(canvas, { plot, codes }, places, { width, height }, ink) {
  const scale = globalThis.devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  const count = codes.length;
  const [radius, alpha] = count > 20000 ? [1, 0.5] : count > 2000 ? [1.75, 0.65] : [3, 0.85];
  pen.globalAlpha = alpha;
  for (let start = 0; start < count; start += CHUNK) {
    for (const [code, { colour, cycle }] of plot.groups.entries()) {
      pen.fillStyle = colour === "currentColor" ? ink : colour;
      for (let index = start; index < Math.min(start + CHUNK, count); index += 1) {
        if (codes[index] === code && !Number.isNaN(places.xs[index])) paintPoint(pen, places.xs[index], places.ys[index], radius, cycle);
      }
    }
  }
}

// Groups of one colour differ in shape, unless they are too small to have one.
function paintPoint(pen, x, y, radius, cycle) {
  if (radius < 2) pen.fillRect(x - radius, y - radius, 2 * radius, 2 * radius);
  else if (cycle > 1) pen.fillRect(x - 0.9 * radius, y - 0.9 * radius, 1.8 * radius, 1.8 * radius);
  else {
    pen.beginPath();
    if (cycle === 0) pen.arc(x, y, radius, 0, 7);
    else for (const [dx, dy] of [[0, -1], [1, 0], [0, 1], [-1, 0]]) pen.lineTo(x + 1.3 * radius * dx, y + 1.3 * radius * dy);
    pen.fill();
  }
}
