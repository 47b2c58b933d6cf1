// A scatter plot on a canvas: it draws points, finds the one under the pointer, and has an area brushed.
//
//   svg     axes, ticks, labels: they follow the theme by themselves
//   canvas  the points, drawn again only when the size, the limits or the hidden groups change
//   over    the ring around the point that is pointed at and the brushed area: all that a move of the pointer draws

import { make } from "./dom.js";
import { writeMetric, writeTime } from "./facts.js";
import { shape, writeText } from "./svg.js";

const HEIGHT = 380;
const EDGES = { left: 14, right: 14, top: 30, bottom: 46 };
const REACH = 14; // pixels from which the pointer finds a point
const CELL = 12; // pixels of a cell of the index: few cells are within reach, and few points in a cell
const BRUSHED = 4; // pixels a press has to move to be no click
const CHUNK = 4096; // points of one group drawn before those of the next, so that none hides the others
const LETTER = 6.2; // about as wide as a digit is

/**
 * @typedef {object} Axis
 * @property {string} label
 * @property {"number"|"time"|"names"} kind
 * @property {number} offset what is added to a value that is shown
 * @property {boolean} computed whether its values are in no column of the frame
 * @property {string[]} names of the rows of an axis of names, from the top down
 */

const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200];
const DAYS = [1, 2, 7, 14, 28, 91, 182, 364];
STEPS_S.push(...DAYS.map((days) => days * 86400));

function numberTicks(low, high, count) {
  const rough = (high - low) / count;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * unit).find((size) => size >= rough * 0.999);
  const ticks = [];
  // Plus 0, since the first index may be -0.
  for (let index = Math.ceil(low / step - 1e-9) + 0; index * step <= high + step * 1e-9; index += 1) ticks.push(index * step);
  const digits = Math.min(Math.max(-Math.floor(Math.log10(step) + 1e-9), 0), 12);
  const write = (value) => value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return ticks.map((value) => [value, write(value)]);
}

function timeTicks(low, high, count) {
  const step = STEPS_S.find((size) => size * count >= high - low) ?? STEPS_S.at(-1) * Math.ceil((high - low) / count / STEPS_S.at(-1));
  const ticks = [];
  for (let seconds = Math.ceil(low / step) * step; seconds <= high; seconds += step) ticks.push(seconds);
  return ticks.map((seconds, index) => {
    const moment = new Date(seconds * 1000).toISOString(); // UTC, as all figures
    const day = new Date(seconds * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
    const isDay = step >= 86400 || seconds % 86400 === 0;
    const clock = moment.slice(11, step >= 60 ? 16 : 19);
    return [seconds, isDay ? day : index ? clock : `${day} ${clock}`];
  });
}

/** Returns places on an axis, in its unit, and what is written there. @param {Axis} axis */
export function axisTicks(axis, [low, high], count) {
  if (axis.kind === "names") return axis.names.map((name, index) => [index, name]).filter(([index]) => index >= low && index <= high);
  const ticks = (axis.kind === "time" ? timeTicks : numberTicks)(low + axis.offset, high + axis.offset, count);
  return ticks.map(([value, text]) => [value - axis.offset, text]);
}

/** Returns a value of an axis in words. @param {Axis} axis @param {number} value */
function writeValue(axis, value) {
  if (axis.kind === "names") return axis.names[Math.round(value)];
  return axis.kind === "time" ? writeTime(value + axis.offset) : writeMetric("", value);
}

/** Returns the ends of an axis that show all values. @param {Axis} axis @param {Float32Array} values */
export function axisLimits(axis, values) {
  if (axis.kind === "names") return [-0.5, axis.names.length - 0.5];
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  const isZeroNear = axis.kind === "number" && low >= 0 && low < high / 2;
  const room = (high - low) * 0.03 || Math.abs(high) * 0.1 || 0.5;
  return [isZeroNear ? 0 : low - room, high + room];
}

/**
 * Returns an index of places on a screen: which of them is nearest to another one, in a few steps however many there are.
 * @param {Float32Array} xs pixels, not below 0; NaN for one that is not there @param {Float32Array} ys
 */
export function indexPlaces(xs, ys, width, height) {
  const columns = Math.floor(width / CELL) + 1;
  const rows = Math.floor(height / CELL) + 1;
  const starts = new Uint32Array(columns * rows + 1); // of each cell in `order`
  const cellOf = (index) => {
    const [x, y] = [xs[index], ys[index]];
    return x >= 0 && y >= 0 && x <= width && y <= height ? Math.floor(y / CELL) * columns + Math.floor(x / CELL) : -1;
  };
  for (let index = 0; index < xs.length; index += 1) {
    const cell = cellOf(index);
    if (cell >= 0) starts[cell + 1] += 1;
  }
  for (let cell = 0; cell < columns * rows; cell += 1) starts[cell + 1] += starts[cell];
  const order = new Uint32Array(starts[columns * rows]);
  const filled = starts.slice();
  for (let index = 0; index < xs.length; index += 1) {
    const cell = cellOf(index);
    if (cell >= 0) order[filled[cell]++] = index;
  }
  /** Returns the nearest place within reach, the last of equals, which is drawn on top; -1 if there is none. */
  return (x, y, reach) => {
    let nearest = -1;
    let least = reach * reach;
    const [left, right] = [Math.max(Math.floor((x - reach) / CELL), 0), Math.min(Math.floor((x + reach) / CELL), columns - 1)];
    const [top, bottom] = [Math.max(Math.floor((y - reach) / CELL), 0), Math.min(Math.floor((y + reach) / CELL), rows - 1)];
    for (let row = top; row <= bottom; row += 1) {
      for (let column = left; column <= right; column += 1) {
        const cell = row * columns + column;
        for (let at = starts[cell]; at < starts[cell + 1]; at += 1) {
          const index = order[at];
          const distance = (xs[index] - x) ** 2 + (ys[index] - y) ** 2;
          if (distance < least || (distance === least && index > nearest)) {
            least = distance;
            nearest = index;
          }
        }
      }
    }
    return nearest;
  };
}

/**
 * Draws a plot that is pointed at and brushed.
 * @param {object} does
 * @param {(index: number) => void} does.point a point is pointed at, or none: -1
 * @param {(index: number) => void} does.open
 * @param {(spans: [number, number][]|null) => void} does.brush parts of x and y, offsets included; null chooses all
 */
export function drawScatter({ point, open, brush }) {
  const svg = shape("svg", { height: HEIGHT, "aria-hidden": true });
  const canvas = make("canvas", "famnb-points");
  const over = make("canvas", "famnb-points famnb-over");
  const element = make("div", "famnb-scatter", svg, canvas, over);
  over.tabIndex = 0;
  over.setAttribute("role", "application"); // arrow keys are its own

  let told = null; // title, axes, groups
  let xs = new Float32Array();
  let ys = new Float32Array();
  let codes = new Uint8Array();
  let hidden = new Set();
  let whole = null; // the limits that show all
  let limits = null; // [x, y] those that are shown
  let box = { left: 0, top: EDGES.top, width: 0, height: 0 };
  let wide = 0;
  let places = { x: new Float32Array(), y: new Float32Array(), find: () => -1 };
  let at = -1;
  let spans = [null, null]; // brushed, without offsets
  let corner = null; // the first corner, in pixels of the box, while an area is brushed
  let mark = null; // the point at the first corner of an area that is chosen by keys
  let pressed = null;
  let ink = "";
  let orders = null; // of the points along x and along y, made when keys need them

  const place = (x, y) => [
    ((x - limits[0][0]) / (limits[0][1] - limits[0][0])) * box.width,
    (told.y.kind === "names" ? (y - limits[1][0]) / (limits[1][1] - limits[1][0]) : 1 - (y - limits[1][0]) / (limits[1][1] - limits[1][0])) * box.height,
  ];
  const value = ([left, top]) => {
    const up = told.y.kind === "names" ? top / box.height : 1 - top / box.height;
    return [limits[0][0] + (left / box.width) * (limits[0][1] - limits[0][0]), limits[1][0] + up * (limits[1][1] - limits[1][0])];
  };

  const drawAxes = () => {
    const yTicks = axisTicks(told.y, limits[1], 6);
    const letters = Math.max(...yTicks.map(([, text]) => Math.min(text.length, 28)), 1);
    const left = EDGES.left + letters * LETTER;
    box = { left, top: EDGES.top, width: Math.max(wide - left - EDGES.right, 1), height: HEIGHT - EDGES.top - EDGES.bottom };
    const xTicks = axisTicks(told.x, limits[0], Math.max(Math.floor(box.width / 110), 2));
    const bottom = box.top + box.height;
    const shapes = [writeText(told.y.label, { x: 8, y: 15, class: "famnb-label" })];
    for (const [tick, text] of yTicks) {
      const y = box.top + place(limits[0][0], tick)[1];
      shapes.push(shape("line", { class: "famnb-rule", x1: left, x2: wide - EDGES.right, y1: y, y2: y }));
      shapes.push(writeText(text.length > 28 ? `${text.slice(0, 27)}…` : text, { x: left - 6, y: y + 3.5, "text-anchor": "end" }));
    }
    let free = -Infinity; // from where on there is room for a text
    for (const [tick, text] of xTicks) {
      const x = left + place(tick, limits[1][0])[0];
      const half = (text.length * LETTER) / 2;
      shapes.push(shape("line", { class: "famnb-rule", x1: x, x2: x, y1: box.top, y2: bottom }));
      const middle = Math.min(Math.max(x, half), wide - half);
      if (middle - half < free) continue;
      shapes.push(writeText(text, { x: middle, y: bottom + 15, "text-anchor": "middle" }));
      free = middle + half + 8;
    }
    shapes.push(writeText(told.x.label, { x: left + box.width / 2, y: bottom + 35, "text-anchor": "middle", class: "famnb-label" }));
    svg.replaceChildren(...shapes);
  };

  const fit = (sheet) => {
    const scale = globalThis.devicePixelRatio || 1;
    sheet.width = Math.round(box.width * scale);
    sheet.height = Math.round(box.height * scale);
    sheet.style.cssText = `left: ${box.left}px; top: ${box.top}px; width: ${box.width}px; height: ${box.height}px`;
    const pen = sheet.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    return pen;
  };

  const locate = () => {
    const [xOf, yOf] = [new Float32Array(xs.length), new Float32Array(xs.length)];
    for (let index = 0; index < xs.length; index += 1) {
      if (hidden.has(codes[index])) xOf[index] = yOf[index] = NaN;
      else [xOf[index], yOf[index]] = place(xs[index], ys[index]);
    }
    places = { x: xOf, y: yOf, find: indexPlaces(xOf, yOf, box.width, box.height) };
    orders = null;
  };

  const drawPoints = () => {
    const pen = fit(canvas);
    const count = xs.length;
    const radius = count > 20000 ? 1 : count > 2000 ? 1.75 : 3;
    ink = getComputedStyle(element).color;
    pen.globalAlpha = count > 20000 ? 0.5 : count > 2000 ? 0.65 : 0.85;
    for (let start = 0; start < count; start += CHUNK) {
      const end = Math.min(start + CHUNK, count);
      for (const [code, group] of told.groups.entries()) {
        if (hidden.has(code)) continue;
        pen.fillStyle = group.colour === "currentColor" ? ink : group.colour;
        for (let index = start; index < end; index += 1) {
          if (codes[index] === code) drawMark(pen, places.x[index], places.y[index], radius, group.cycle);
        }
      }
    }
  };

  const drawOver = () => {
    const pen = over.getContext("2d");
    pen.clearRect(0, 0, box.width, box.height);
    pen.strokeStyle = pen.fillStyle = ink;
    const area = corner ? [corner, pressed] : brushedArea();
    if (area) {
      const [[x0, y0], [x1, y1]] = area;
      const rectangle = [Math.min(x0, x1), Math.min(y0, y1), Math.abs(x1 - x0), Math.abs(y1 - y0)];
      pen.globalAlpha = 0.09;
      pen.fillRect(...rectangle);
      pen.globalAlpha = 0.7;
      pen.lineWidth = 1;
      pen.strokeRect(...rectangle);
    }
    pen.globalAlpha = 1;
    for (const [index, radius] of [[mark, 9], [at, 6]]) {
      if (index === null || index < 0 || Number.isNaN(places.x[index])) continue;
      pen.lineWidth = 2;
      pen.beginPath();
      pen.arc(places.x[index], places.y[index], radius, 0, 2 * Math.PI);
      pen.stroke();
    }
  };

  const brushedArea = () => {
    if (!spans[0] && !spans[1]) return null;
    const [x, y] = spans.map((span, index) => span ?? limits[index]);
    return [place(x[0], y[0]), place(x[1], y[1])];
  };

  const draw = () => {
    if (!told || !wide || !xs.length) return;
    limits ??= whole = [axisLimits(told.x, xs), axisLimits(told.y, ys)];
    drawAxes();
    locate();
    drawPoints();
    fit(over);
    drawOver();
  };

  const moveTo = (index) => {
    if (index === at) return;
    at = index;
    drawOver();
    point(index);
  };

  const choose = (first, second) => {
    const [from, to] = [value(first), value(second)];
    spans = [0, 1].map((axis) => [Math.min(from[axis], to[axis]), Math.max(from[axis], to[axis])]);
    brush(spans.map(([low, high], axis) => [low, high].map((end) => end + [told.x, told.y][axis].offset)));
    drawOver();
  };
  const clear = () => {
    corner = pressed = mark = null;
    spans = [null, null];
    brush(null);
    drawOver();
  };

  // By mouse, pen or finger

  const where = ({ clientX, clientY }) => {
    const { left, top } = over.getBoundingClientRect();
    return [Math.min(Math.max(clientX - left, 0), box.width), Math.min(Math.max(clientY - top, 0), box.height)];
  };
  let start = null;
  over.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    start = where(event);
    over.setPointerCapture(event.pointerId);
  });
  over.addEventListener("pointermove", (event) => {
    const here = where(event);
    if (start && (corner || Math.hypot(here[0] - start[0], here[1] - start[1]) > BRUSHED)) {
      moveTo(-1);
      corner = start;
      pressed = here;
      drawOver();
    } else moveTo(places.find(...here, REACH));
  });
  over.addEventListener("pointerup", (event) => {
    if (!start) return;
    const from = corner;
    start = corner = null;
    if (from) choose(from, where(event));
    else {
      const index = places.find(...where(event), REACH);
      moveTo(index);
      if (index >= 0) open(index);
    }
  });
  over.addEventListener("pointercancel", () => {
    start = corner = null;
    drawOver();
  });
  over.addEventListener("pointerleave", () => !corner && !isReached && moveTo(-1));
  over.addEventListener("pointerenter", () => checkInk());

  // By keys

  let isReached = false; // whether the point was reached by keys, so that it stays where the pointer leaves
  const sortPoints = () => {
    const shown = Uint32Array.from(xs.keys()).filter((index) => places.x[index] >= 0 && places.x[index] <= box.width && places.y[index] >= 0 && places.y[index] <= box.height);
    const along = (values) => shown.slice().sort((one, other) => values[one] - values[other] || one - other);
    const byX = along(places.x);
    const byY = along(places.y);
    const ranks = [byX, byY].map((order) => {
      const rank = new Uint32Array(xs.length);
      for (const [position, index] of order.entries()) rank[index] = position;
      return rank;
    });
    orders = { byX, byY, ranks };
  };
  over.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && (spans[0] || spans[1] || mark !== null)) {
      event.preventDefault();
      event.stopPropagation();
      clear();
      return;
    }
    const isSpace = event.key === " ";
    if ((event.key === "Enter" || isSpace) && at >= 0) {
      event.preventDefault();
      if (!isSpace) open(at);
      else if (mark === null) mark = at;
      else {
        const first = mark;
        mark = null;
        // A little around both, so that they are in it.
        const [x0, y0, x1, y1] = [places.x[first], places.y[first], places.x[at], places.y[at]];
        choose([Math.min(x0, x1) - 1, Math.min(y0, y1) - 1], [Math.max(x0, x1) + 1, Math.max(y0, y1) + 1]);
      }
      drawOver();
      return;
    }
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [1, -1], ArrowDown: [1, 1], Home: [0, -Infinity], End: [0, Infinity] }[event.key];
    if (!step || !xs.length) return;
    event.preventDefault();
    if (!orders) sortPoints();
    const order = step[0] ? orders.byY : orders.byX;
    if (!order.length) return;
    const many = event.shiftKey ? Math.max(Math.round(order.length / 50), 1) : 1;
    const last = order.length - 1;
    const outside = step[1] > 0 ? -1 : last + 1; // from where the first step leads to an end
    const next = (at >= 0 ? orders.ranks[step[0]][at] : outside) + step[1] * many;
    isReached = true;
    moveTo(order[Math.min(Math.max(next, 0), last)]);
  });
  over.addEventListener("blur", () => {
    isReached = false;
    moveTo(-1);
  });

  // The colour of text is that of points whose colour is black, and changes with the theme.
  const checkInk = () => {
    if (!told || !wide || getComputedStyle(element).color === ink) return;
    drawPoints();
    drawOver();
  };
  const themes = new MutationObserver(checkInk);
  for (const root of [document.documentElement, document.body]) themes.observe(root, { attributes: true });
  const observer = new ResizeObserver(([{ contentRect }]) => {
    if (contentRect.width === wide) return;
    wide = contentRect.width;
    draw();
  });
  observer.observe(svg);

  return {
    element,
    /** @param {object} plot @param {Float32Array} x @param {Float32Array} y @param {Uint8Array} groups */
    tell: (plot, x, y, groups) => {
      [told, xs, ys, codes, whole, limits] = [plot, x, y, groups, null, null];
      const axes = `${plot.y.label} against ${plot.x.label}, ${x.length.toLocaleString("en")} points`;
      over.setAttribute("aria-label", `${axes}; arrow keys go from point to point, Enter opens one, Space marks two corners of an area`);
      draw();
    },
    /** @param {([number, number]|null)[]} wanted parts of x and y, offsets included @param {number[]} groups */
    choose: (wanted, groups) => {
      spans = wanted.map((span, axis) => span?.map((end) => end - [told.x, told.y][axis].offset) ?? null);
      const isSame = groups.length === hidden.size && groups.every((code) => hidden.has(code));
      hidden = new Set(groups);
      if (isSame) drawOver();
      else draw();
    },
    clear,
    zoom: (isIn) => {
      limits = isIn ? spans.map((span, axis) => span ?? limits[axis]) : whole;
      draw();
    },
    /** Each axis with what a point's place on it is called. @param {number} index */
    placesOf: (index) => [[told.x, xs], [told.y, ys]].map(([axis, values]) => [axis, writeValue(axis, values[index])]),
    /** Where a point is, in pixels of the plot. @param {number} index */
    placeOf: (index) => [box.left + places.x[index], box.top + places.y[index], wide],
    end: () => {
      observer.disconnect();
      themes.disconnect();
    },
  };
}

function drawMark(pen, x, y, radius, cycle) {
  if (radius < 2) pen.fillRect(x - radius, y - radius, 2 * radius, 2 * radius);
  else if (cycle === 0) {
    pen.beginPath();
    pen.arc(x, y, radius, 0, 7);
    pen.fill();
  } else if (cycle === 1) {
    pen.beginPath();
    pen.moveTo(x, y - 1.3 * radius);
    pen.lineTo(x + 1.3 * radius, y);
    pen.lineTo(x, y + 1.3 * radius);
    pen.lineTo(x - 1.3 * radius, y);
    pen.fill();
  } else pen.fillRect(x - 0.9 * radius, y - 0.9 * radius, 1.8 * radius, 1.8 * radius);
}
