// A small chart over time: stacked bars, or a line a group. Each span of time has its words when it is pointed at or
// reached by arrow keys.

import { html, useRef, useState } from "../vendor/preact.js";
import { memo, useWidth } from "../runtime/tool.js";

const EDGES = { left: 58, right: 8, top: 8, bottom: 20 };
const PLOT_PX = 104;
const HEIGHT = EDGES.top + PLOT_PX + EDGES.bottom;
const BAR_PX = 48; // a bar that is wider looks like an area
const LABEL_PX = 60; // about as wide as a time is
const DASHES = ["none", "6 3", "2 3", "8 3 2 3"]; // distinguish lines of one colour

/**
 * @typedef {import("../protocol.js").ChartView} ChartView
 */

const toY = (value, top) => EDGES.top + PLOT_PX * (1 - value / top);

/**
 * Returns the bars of a chart, those of one span on one another.
 * @param {ChartView} chart @param {number} width of a span, in pixels
 */
export function stackBars({ values, top }, width) {
  const thickness = Math.min(width - Math.min(width * 0.15, 2), BAR_PX);
  const sums = values[0].map(() => 0);
  return values.flatMap((column, group) =>
    column.flatMap((value, index) => {
      if (!value) return [];
      const bottom = toY(sums[index], top);
      sums[index] += value;
      const height = Math.max(bottom - toY(sums[index], top), 0.75); // little is not nothing
      return [{ group, x: EDGES.left + index * width + (width - thickness) / 2, y: bottom - height, width: thickness, height }];
    }),
  );
}

/**
 * Returns the path of a group's line, which has a gap where nothing is known, and its points.
 * @param {(number | null)[]} column @param {number} top @param {number} width of a span, in pixels
 */
export function traceLine(column, top, width) {
  const places = column.map((value, index) => (value === null ? null : [EDGES.left + (index + 0.5) * width, toY(value, top)]));
  const steps = places.map((place, index) => place && `${places[index - 1] ? "L" : "M"}${place.map((part) => part.toFixed(1)).join(" ")}`);
  return { path: steps.filter(Boolean).join(""), points: places.filter((place) => place !== null) };
}

const Values = memo(({ chart, groups, width }) => {
  if (!chart.top) return null;
  if (chart.kind === "bars") {
    return stackBars(chart, width).map(({ group, ...place }) => {
      const { colour, cycle } = groups[group];
      return html`<rect ...${place} style=${{ fill: colour }} fill-opacity=${cycle ? 0.55 : 1} />`;
    });
  }
  return chart.values.map((column, group) => {
    const { colour, cycle } = groups[group];
    const { path, points } = traceLine(column, chart.top, width);
    return html`<g key=${group}>
      <path d=${path} style=${{ stroke: colour }} stroke-dasharray=${DASHES[cycle % DASHES.length]} fill="none" stroke-width="1.75" stroke-linejoin="round" />
      ${points.map(([x, y]) => html`<circle cx=${x} cy=${y} r="2.2" style=${{ fill: colour }} />`)}
    </g>`;
  });
});

/** @param {{chart: ChartView, times: [number, string][], wide: number, width: number}} props */
function Axes({ chart, times, wide, width }) {
  const every = Math.ceil(LABEL_PX / Math.max((wide - EDGES.left) / Math.max(times.length, 1), 1));
  const shown = times.filter((_, index) => index % every === 0).map(([index, text]) => ({ text, x: EDGES.left + index * width }));
  return html`<g>
    ${chart.ticks.map(([value, text]) => {
      const y = toY(value, chart.top);
      return html`<line class="famnb-rule" x1=${EDGES.left} x2=${wide - EDGES.right} y1=${y} y2=${y} />
        <text x=${EDGES.left - 5} y=${y + 3.5} text-anchor="end">${text}</text>`;
    })}
    ${shown.map(({ text, x }) => {
      const isLast = x + LABEL_PX > wide;
      return html`<text x=${isLast ? wide : x} y=${HEIGHT - 6} text-anchor=${isLast ? "end" : "start"}>${text}</text>`;
    })}
    ${!chart.top && html`<text x=${wide / 2} y=${HEIGHT / 2} text-anchor="middle">none</text>`}
  </g>`;
}

/** @param {{chart: ChartView, overview: import("../protocol.js").OverviewView}} props */
export function Chart({ chart, overview: { spans, ticks, groups } }) {
  const svg = useRef(/** @type {any} */ (null));
  const wide = useWidth(svg);
  const [pointed, setPointed] = useState(-1);
  const isReached = useRef(false); // by keys, so that it stays where the pointer leaves
  const last = spans.length - 1;
  const index = Math.min(pointed, last);
  const width = Math.max(wide - EDGES.left - EDGES.right, 0) / spans.length;
  const spanAt = ({ clientX }) => {
    const found = Math.floor((clientX - svg.current.getBoundingClientRect().left - EDGES.left) / width);
    return found >= 0 && found <= last ? found : -1;
  };
  const onPointerMove = (event) => {
    isReached.current = false;
    setPointed(spanAt(event));
  };
  const onKeyDown = (event) => {
    const start = index >= 0 ? index : spans.length;
    const next = { ArrowLeft: Math.max(start - 1, 0), ArrowRight: Math.min(start + 1, last), Home: 0, End: last }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    isReached.current = true;
    setPointed(next);
  };
  return html`<figure class="famnb-chart">
    <figcaption>
      <strong>${chart.key}</strong><span class="famnb-words" role="status">${index >= 0 && `${spans[index]}: ${chart.words[index]}`}</span>
    </figcaption>
    <svg
      ref=${svg}
      height=${HEIGHT}
      role="img"
      tabindex="0"
      aria-label=${`${chart.key} over time, ${spans[0]} until ${spans[last]}; arrow keys read it`}
      onPointerMove=${onPointerMove}
      onPointerLeave=${() => !isReached.current && setPointed(-1)}
      onBlur=${() => setPointed(-1)}
      onKeyDown=${onKeyDown}
    >
      ${wide > 0 && html`<${Axes} chart=${chart} times=${ticks} wide=${wide} width=${width} /><${Values} chart=${chart} groups=${groups} width=${width} />`}
      ${index >= 0 && html`<rect class="famnb-mark" x=${EDGES.left + index * width} width=${width} y=${EDGES.top} height=${PLOT_PX} />`}
    </svg>
  </figure>`;
}
