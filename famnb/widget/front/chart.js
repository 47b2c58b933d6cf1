// A small chart over time, drawn from what charts.py describes: stacked bars, or a line a group. Each span of time is
// said in words when it is pointed at or reached by arrow keys, and a click or Enter chooses it.

import { make, write } from "./dom.js";
import { shape, writeText } from "./svg.js";

const HEIGHT = 132;
const BAR_PX = 48; // a bar that is wider looks like an area
const EDGES = { left: 58, right: 8, top: 8, bottom: 20 };
const LABEL_PX = 60; // about as wide as a time is
const DASHES = ["none", "6 3", "2 3", "8 3 2 3"]; // tell lines of one colour apart

/**
 * @typedef {object} Chart
 * @property {string} name
 * @property {"bars"|"lines"} kind
 * @property {number} top the end of its axis; 0 where there is nothing to draw
 * @property {[number, string][]} ticks values of its axis, and how they are written
 * @property {(number|null)[][]} values of each group, one a span
 * @property {string[]} words each span in words
 */

/**
 * Returns the shapes of a chart's values.
 * @param {Chart} chart @param {{colour: string, cycle: number}[]} groups @param {number} count of spans
 * @param {number} width of a span, in pixels
 */
export function drawValues({ kind, top, values }, groups, count, width) {
  const high = HEIGHT - EDGES.top - EDGES.bottom;
  const x = (index) => EDGES.left + index * width;
  const y = (value) => EDGES.top + high * (1 - value / top);
  const shapes = [];
  if (!top) return shapes;
  if (kind === "bars") {
    const thickness = Math.min(width - Math.min(width * 0.15, 2), BAR_PX);
    const below = new Array(count).fill(0);
    for (const [group, column] of values.entries()) {
      const { colour, cycle } = groups[group];
      for (const [index, value] of column.entries()) {
        if (!value) continue;
        const from = below[index];
        below[index] += value;
        const height = Math.max(y(from) - y(below[index]), 0.75); // little is not nothing
        const place = { x: x(index) + (width - thickness) / 2, width: thickness, y: y(from) - height, height };
        shapes.push(shape("rect", { ...place, style: `fill: ${colour}`, "fill-opacity": cycle ? 0.55 : 1 }));
      }
    }
    return shapes;
  }
  for (const [group, column] of values.entries()) {
    const { colour, cycle } = groups[group];
    const points = column.map((value, index) => (value === null ? null : [x(index + 0.5), y(value)]));
    const path = points.map((point, index) => point && `${points[index - 1] ? "L" : "M"}${point.map((part) => part.toFixed(1)).join(" ")}`);
    const line = { d: path.filter(Boolean).join(""), style: `stroke: ${colour}`, "stroke-dasharray": DASHES[cycle % DASHES.length] };
    shapes.push(shape("path", { ...line, fill: "none", "stroke-width": 1.75, "stroke-linejoin": "round" }));
    for (const point of points.filter(Boolean)) shapes.push(shape("circle", { cx: point[0], cy: point[1], r: 2.2, style: `fill: ${colour}` }));
  }
  return shapes;
}

/**
 * Draws a chart that can be chosen from; `choose` gets the index of a span.
 * @param {(index: number) => void} choose
 */
export function drawChart(choose) {
  const title = make("strong", "");
  const words = make("span", "famnb-said");
  words.setAttribute("role", "status");
  const svg = shape("svg", { height: HEIGHT, role: "img", tabindex: 0 });
  const element = make("figure", "famnb-chart", make("figcaption", "", title, words), svg);
  const mark = shape("rect", { class: "famnb-mark", y: EDGES.top, height: HEIGHT - EDGES.top - EDGES.bottom });
  let chart = null;
  let around = { spans: [], ticks: [], groups: [] };
  let wide = 0; // the drawing, in pixels
  let at = -1; // the span that is pointed at
  let isReached = false; // by keys
  let chosen = null;
  const width = () => Math.max(wide - EDGES.left - EDGES.right, 0) / around.spans.length;
  const point = (index) => {
    at = index;
    const marked = at >= 0 ? at : chosen;
    mark.style.display = marked === null ? "none" : "";
    mark.setAttribute("x", EDGES.left + (marked ?? 0) * width());
    mark.setAttribute("width", width());
    write(words, at >= 0 ? `${around.spans[at]}: ${chart.words[at]}` : "");
  };
  const spanAt = ({ clientX }) => {
    const index = Math.floor((clientX - svg.getBoundingClientRect().left - EDGES.left) / width());
    return index >= 0 && index < around.spans.length ? index : -1;
  };
  svg.addEventListener("pointermove", (event) => {
    isReached = false;
    point(spanAt(event));
  });
  svg.addEventListener("pointerleave", () => !isReached && point(-1));
  svg.addEventListener("blur", () => point(-1));
  svg.addEventListener("click", (event) => spanAt(event) >= 0 && choose(spanAt(event)));
  svg.addEventListener("keydown", (event) => {
    const last = around.spans.length - 1;
    const here = at >= 0 ? at : (chosen ?? last + 1);
    const next = { ArrowLeft: Math.max(here - 1, 0), ArrowRight: Math.min(here + 1, last), Home: 0, End: last }[event.key];
    const isChoice = event.key === "Enter" || event.key === " ";
    if (next === undefined && !isChoice) return;
    event.preventDefault();
    isReached = true;
    if (next !== undefined) point(next);
    else if (at >= 0) choose(at);
  });
  const draw = () => {
    if (!chart || !wide) return;
    const grid = chart.ticks.flatMap(([value, text]) => {
      const y = EDGES.top + (HEIGHT - EDGES.top - EDGES.bottom) * (1 - value / chart.top);
      const line = shape("line", { class: "famnb-rule", x1: EDGES.left, x2: wide - EDGES.right, y1: y, y2: y });
      return [line, writeText(text, { x: EDGES.left - 5, y: y + 3.5, "text-anchor": "end" })];
    });
    const space = (wide - EDGES.left) / Math.max(around.ticks.length, 1);
    const every = Math.ceil(LABEL_PX / Math.max(space, 1));
    const times = around.ticks.filter((_, index) => index % every === 0).map(([index, text]) => {
      const x = EDGES.left + index * width();
      const isLast = x + LABEL_PX > wide;
      return writeText(text, { x: isLast ? wide : x, y: HEIGHT - 6, "text-anchor": isLast ? "end" : "start" });
    });
    const nothing = chart.top ? [] : [writeText("none", { x: wide / 2, y: HEIGHT / 2, "text-anchor": "middle" })];
    svg.replaceChildren(...grid, ...drawValues(chart, around.groups, around.spans.length, width()), ...times, ...nothing, mark);
    point(Math.min(at, around.spans.length - 1));
  };
  const observer = new ResizeObserver(([{ contentRect }]) => {
    wide = contentRect.width;
    draw();
  });
  observer.observe(svg);
  return {
    element,
    /** @param {Chart} told @param {object} all the spans, ticks and groups of all charts @param {number|null} span */
    tell: (told, all, span) => {
      chart = told;
      around = all;
      chosen = span;
      write(title, told.name);
      const about = `${told.name} over time, ${all.spans[0]} until ${all.spans.at(-1)}`;
      svg.setAttribute("aria-label", `${about}; arrow keys read it, Enter lists the calls`);
      draw();
    },
    end: () => observer.disconnect(),
  };
}
