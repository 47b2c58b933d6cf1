// A scatter plot: it paints points on a canvas, finds the one under the pointer, and has an area brushed.
//
//   svg      axes, ticks, labels
//   canvas   the points, painted again only when the size, the limits, the hidden groups or the theme change
//   svg      the ring around the point that is pointed at and the brushed area

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { useTool, useWidth } from "../runtime/tool.js";
import { findNearest, HEIGHT, layOut, paintPoints, placePoints, sortPlaces, writtenTicks } from "./points.js";

const REACH = 14; // pixels from which the pointer finds a point
const DRAG_PX = 4; // a press has to move so far to be no click
const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [1, -1], ArrowDown: [1, 1], Home: [0, -Infinity], End: [0, Infinity] };

/**
 * @typedef {import("./points.js").Layout} Layout
 * @typedef {import("./points.js").Place} Place
 * @typedef {import("./points.js").Points} Points
 * @typedef {import("./ticks.js").Span} Span
 */

// The colour of text, which that of points whose colour is black follows, and a function that looks at it again.
function useInk(ref) {
  const [ink, setInk] = useState("");
  const read = () => setInk(getComputedStyle(ref.current).color);
  useEffect(() => {
    const observer = new MutationObserver(read);
    for (const root of [document.documentElement, document.body]) observer.observe(root, { attributes: true });
    read();
    return () => observer.disconnect();
  }, []);
  return { ink, read };
}

/** @param {{plot: import("../protocol.js").PlotView, layout: Layout, wide: number}} props */
function Axes({ plot, layout, wide }) {
  const { left, top, width, height, x, y, xTicks, yTicks } = layout;
  const bottom = top + height;
  return html`<g>
    <text class="famnb-axis" x="8" y="15">${plot.y.label}</text>
    ${yTicks.map(([value, text]) => {
      const place = top + y.toPixels(value);
      return html`<line class="famnb-rule" x1=${left} x2=${left + width} y1=${place} y2=${place} />
        <text x=${left - 6} y=${place + 3.5} text-anchor="end">${text}</text>`;
    })}
    ${xTicks.map(([value]) => {
      const place = left + x.toPixels(value);
      return html`<line class="famnb-rule" x1=${place} x2=${place} y1=${top} y2=${bottom} />`;
    })}
    ${writtenTicks(layout, wide).map(({ middle, text }) => html`<text x=${middle} y=${bottom + 15} text-anchor="middle">${text}</text>`)}
    <text class="famnb-axis" x=${left + width / 2} y=${bottom + 35} text-anchor="middle">${plot.x.label}</text>
  </g>`;
}

// Beside the point, on the side where there is more room.
function Tip({ pointed: { title, text, facts }, left, top, wide }) {
  const side = left > wide / 2 ? { right: `${wide - left + 14}px` } : { left: `${left + 14}px` };
  return html`<div class="famnb-tip" style=${{ ...side, top: `${Math.max(Math.min(top - 20, 200), 0)}px` }}>
    <strong>${title}</strong>${text && html`<p class="famnb-words">${text}</p>`}
    <dl class="famnb-facts">${facts.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>
  </div>`;
}

/** @param {{area: Place[] | null, rings: {place: Place, radius: number}[]}} props */
function Marks({ area, rings }) {
  const [[x0, y0], [x1, y1]] = area ?? [[0, 0], [0, 0]];
  const rectangle = { x: Math.min(x0, x1), y: Math.min(y0, y1), width: Math.abs(x1 - x0), height: Math.abs(y1 - y0) };
  return html`<g>
    ${area && html`<rect class="famnb-area" ...${rectangle} />`}
    ${rings.map(({ place: [cx, cy], radius }) => html`<circle class="famnb-ring" cx=${cx} cy=${cy} r=${radius} />`)}
  </g>`;
}

/**
 * @param {object} props
 * @param {Points} props.points
 * @param {Span[]} props.limits of x and y, between which points are shown
 * @param {number[]} props.hidden groups
 * @param {Span[] | null} props.spans the brushed parts of x and y; null if all is chosen
 * @param {(spans: Span[] | null) => void} props.brush
 * @param {(index: number) => void} props.open
 * @param {import("../protocol.js").PointView | null} props.described the point that Python has described last
 */
export function Scatter({ points, limits, hidden, spans, brush, open, described }) {
  const { outbox } = useTool();
  const frame = useRef(/** @type {any} */ (null));
  const wide = useWidth(frame);
  const { ink, read } = useInk(frame);
  const layout = useMemo(() => layOut(points, limits, wide), [points, ...limits, wide]);
  const places = useMemo(() => placePoints(points, layout, hidden), [points, layout, hidden]);
  const canvas = useRef(/** @type {any} */ (null));
  const [pointed, setPointed] = useState(-1);
  const [corner, setCorner] = useState(-1); // the point at the first corner of an area that is chosen by keys
  const [drag, setDrag] = useState(/** @type {Place[] | null} */ (null)); // two corners of an area
  // At once, but one at a time: a pointer on its way passes points faster than Python describes them.
  const asked = useRef(-1);
  const isAsking = outbox.isPending("describe_point");
  useLayoutEffect(() => {
    if (isAsking || asked.current === pointed) return;
    asked.current = pointed;
    if (pointed >= 0) outbox.send("describe_point", { point: pointed });
  }, [pointed, isAsking]);
  useLayoutEffect(() => paintPoints(canvas.current, points, places, layout, ink), [points, places, layout, ink]);
  const { x, y, left, top, width, height } = layout;
  const place = (one, other) => /** @type {Place} */ ([x.toPixels(one), y.toPixels(other)]);
  const choose = (from, to) => {
    const ends = [[from[0], to[0]].map(x.toValue), [from[1], to[1]].map(y.toValue)];
    brush(ends.map(([one, other]) => /** @type {Span} */ ([Math.min(one, other), Math.max(one, other)])));
  };
  const clear = () => {
    setCorner(-1);
    brush(null);
  };
  const keys = useKeys({ places, layout, pointed, setPointed, corner, setCorner, isBrushed: Boolean(spans), open, choose, clear });
  const pointer = usePointer({ places, layout, setPointed, isReached: keys.isReached, drag, setDrag, open, choose });
  const area = drag ?? (spans && [0, 1].map((end) => place(spans[0][end], spans[1][end])));
  const rings = [[corner, 9], [pointed, 6]].flatMap(([index, radius]) => {
    const place = /** @type {Place} */ ([places.xs[index], places.ys[index]]);
    return index >= 0 && !Number.isNaN(place[0]) ? [{ place, radius }] : [];
  });
  const { plot, xs } = points;
  const label = `${plot.y.label} against ${plot.x.label}, ${xs.length.toLocaleString("en")} points`;
  const box = { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` };
  return html`<div class="famnb-scatter">
    <svg ref=${frame} height=${HEIGHT} aria-hidden="true">${wide > 0 && html`<${Axes} plot=${plot} layout=${layout} wide=${wide} />`}</svg>
    <canvas ref=${canvas} class="famnb-points" style=${box} />
    <svg
      class="famnb-points famnb-over"
      style=${box}
      tabindex="0"
      role="application"
      aria-label=${`${label}; arrow keys go from point to point, Enter opens one, Space marks two corners of an area`}
      onPointerEnter=${read}
      ...${pointer}
      onKeyDown=${keys.onKeyDown}
      onBlur=${keys.onBlur}
    ><${Marks} area=${area} rings=${rings} /></svg>
    <div role="status">
      ${described?.point === pointed && html`<${Tip} pointed=${described} left=${left + places.xs[pointed]} top=${top + places.ys[pointed]} wide=${wide} />`}
    </div>
  </div>`;
}

// By mouse, pen or finger: a point is pointed at and opened, or an area is brushed.
function usePointer({ places, layout, setPointed, isReached, drag, setDrag, open, choose }) {
  const start = useRef(/** @type {Place | null} */ (null)); // where it was pressed
  /** @returns {Place} */
  const placeOf = ({ clientX, clientY, currentTarget }) => {
    const { left, top } = currentTarget.getBoundingClientRect();
    return [Math.min(Math.max(clientX - left, 0), layout.width), Math.min(Math.max(clientY - top, 0), layout.height)];
  };
  const end = () => {
    start.current = null;
    setDrag(null);
  };
  return {
    onPointerDown: (event) => {
      if (event.button !== 0) return;
      start.current = placeOf(event);
      event.currentTarget.setPointerCapture(event.pointerId);
    },
    onPointerMove: (event) => {
      const place = placeOf(event);
      const from = start.current;
      if (from && (drag || Math.hypot(place[0] - from[0], place[1] - from[1]) > DRAG_PX)) {
        setPointed(-1);
        setDrag([from, place]);
      } else setPointed(findNearest(places, layout, place, REACH));
    },
    onPointerUp: (event) => {
      if (!start.current) return;
      const place = placeOf(event);
      if (drag) choose(start.current, place);
      else {
        const index = findNearest(places, layout, place, REACH);
        setPointed(index);
        if (index >= 0) open(index);
      }
      end();
    },
    onPointerCancel: end,
    onPointerLeave: () => !drag && !isReached.current && setPointed(-1),
  };
}

// By keys: arrows go from point to point, Enter opens one, Space marks two corners of an area, Esc chooses all again.
function useKeys({ places, layout, pointed, setPointed, corner, setCorner, isBrushed, open, choose, clear }) {
  const isReached = useRef(false); // whether the point was reached by keys, so that it stays where the pointer leaves
  const sorted = useRef(/** @type {any} */ ({})); // made when it is needed
  const move = ([axis, step], isFast) => {
    if (sorted.current.places !== places) sorted.current = { places, orders: sortPlaces(places, layout) };
    const order = sorted.current.orders[axis];
    if (!order.length) return;
    const last = order.length - 1;
    const position = pointed >= 0 ? order.indexOf(pointed) : step > 0 ? -1 : last + 1;
    const next = position + step * (isFast ? Math.max(Math.round(order.length / 50), 1) : 1);
    isReached.current = true;
    setPointed(order[Math.min(Math.max(next, 0), last)]);
  };
  const mark = () => {
    setCorner(corner < 0 ? pointed : -1);
    if (corner < 0) return;
    const [xs, ys] = [places.xs, places.ys].map((values) => [values[corner], values[pointed]]);
    // A little around both points, so that they are in it.
    choose([Math.min(...xs) - 1, Math.min(...ys) - 1], [Math.max(...xs) + 1, Math.max(...ys) + 1]);
  };
  const onKeyDown = (event) => {
    const { key } = event;
    const act =
      key === "Escape" && (isBrushed || corner >= 0) ? clear
      : key === "Enter" && pointed >= 0 ? () => open(pointed)
      : key === " " && pointed >= 0 ? mark
      : STEPS[key] ? () => move(STEPS[key], event.shiftKey)
      : null;
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  };
  const onBlur = () => {
    isReached.current = false;
    setPointed(-1);
  };
  return { isReached, onKeyDown, onBlur };
}
