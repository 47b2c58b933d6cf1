// A small chart over time: stacked bars, or a line a group. Each span of time has its words when it is pointed at or
// reached by arrow keys. All places are shares of the chart, so that it is as wide as the page lets it be.

import { html, useState } from "../vendor/preact.js";
import { memo } from "../runtime/tool.js";

const BAR_PX = 48; // a bar that is wider looks like an area

/** @typedef {import("../protocol.js").ChartView} ChartView */

const percent = (share) => `${100 * share}%`;

/** Returns the bars of a chart, those of one span on one another; places are shares from the left and the top. @param {ChartView} chart */
export function stackBars({ values, top }) {
  const sums = values[0].map(() => 0);
  return values.flatMap((column, group) =>
    column.flatMap((value, index) => {
      if (!value) return [];
      sums[index] += value;
      return [{ group, x: index / column.length, y: 1 - sums[index] / top, height: value / top }];
    }),
  );
}

// A line has a gap where nothing is known.
const Values = memo(({ chart: { kind, values, top }, chart, groups }) => {
  if (!top) return html`<text x="50%" y="50%" text-anchor="middle">none</text>`;
  const lookOf = (group) => ({ color: groups[group].colour, opacity: groups[group].cycle ? 0.55 : 1 });
  const count = values[0].length;
  if (kind === "bars") {
    const width = `min(${percent(0.85 / count)}, ${BAR_PX}px)`;
    // Little is not nothing.
    return stackBars(chart).map(({ group, x, y, height }) => html`<rect x=${percent(x)} y=${percent(y)} style=${{ ...lookOf(group), width, height: `max(${percent(height)}, 0.75px)` }} />`);
  }
  return values.map((column, group) => {
    const places = column.map((value, index) => (value === null ? null : [percent((index + 0.5) / count), percent(1 - value / top)]));
    return html`<g key=${group} style=${lookOf(group)}>
      ${places.map((place, index) => place && places[index - 1] && html`<line x1=${places[index - 1][0]} y1=${places[index - 1][1]} x2=${place[0]} y2=${place[1]} />`)}
      ${places.map((place) => place && html`<circle cx=${place[0]} cy=${place[1]} r="2.2" />`)}
    </g>`;
  });
});

/** @param {{chart: ChartView, overview: import("../protocol.js").OverviewView}} props */
export function Chart({ chart, overview: { spans, ticks, groups } }) {
  const [pointed, setPointed] = useState(-1);
  const last = spans.length - 1;
  const index = Math.min(pointed, last);
  const onPointerMove = ({ clientX, currentTarget }) => {
    const { left, width } = currentTarget.getBoundingClientRect();
    const found = Math.floor(((clientX - left) / width) * spans.length);
    setPointed(found >= 0 && found <= last ? found : -1);
  };
  const onKeyDown = (event) => {
    const start = index >= 0 ? index : spans.length;
    const next = { ArrowLeft: Math.max(start - 1, 0), ArrowRight: Math.min(start + 1, last), Home: 0, End: last }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    setPointed(next);
  };
  return html`<figure class="famnb-chart">
    <figcaption>
      <strong>${chart.key}</strong><span class="famnb-words" role="status">${index >= 0 && `${spans[index]}: ${chart.words[index]}`}</span>
    </figcaption>
    <svg
      role="img"
      tabindex="0"
      aria-label=${`${chart.key} over time, ${spans[0]} until ${spans[last]}; arrow keys read it`}
      onPointerMove=${onPointerMove}
      onPointerLeave=${() => setPointed(-1)}
      onBlur=${() => setPointed(-1)}
      onKeyDown=${onKeyDown}
    >
      ${chart.ticks.map(([value, text]) => {
        const y = percent(1 - value / chart.top);
        return html`<line class="famnb-rule" x2="100%" y1=${y} y2=${y} /><text dx="-5" y=${y} dy="3.5" text-anchor="end">${text}</text>`;
      })}
      ${ticks.map(([start, text]) => html`<text x=${percent(start / spans.length)} y="100%" dy="14">${text}</text>`)}
      <${Values} chart=${chart} groups=${groups} />
      ${index >= 0 && html`<rect class="famnb-mark" x=${percent(index / spans.length)} width=${percent(1 / spans.length)} height="100%" />`}
    </svg>
  </figure>`;
}
