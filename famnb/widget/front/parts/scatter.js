// A scatter plot, which Python paints: the page finds the point under the pointer, and has an area brushed. All places are
// shares of the axes' width and height, from the left and from the top.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { useTool, useWidth } from "../runtime/tool.js";
import { isDark } from "./call.js";

const REACH = 14; // pixels from which the pointer finds a point
const DRAG_PX = 4; // a press has to move so far to be no click
const AROUND = 0.002; // what an area that is chosen by keys holds around its corners
const REDRAW_PX = 40; // by so much the width changes before the picture is painted anew; till then it is scaled
const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [1, -1], ArrowDown: [1, 1], Home: [0, -Infinity], End: [0, Infinity] };

/**
 * @typedef {[number, number]} Place
 * @typedef {[number, number]} Span
 * @typedef {{xs: Float32Array, ys: Float32Array}} Places NaN where a point is not shown
 */

// A copy, since a part of a message may lie where no array of numbers can begin.
function readShares({ buffer, byteOffset, byteLength }) {
  const numbers = new Uint16Array(buffer.slice(byteOffset, byteOffset + byteLength));
  return Float32Array.from(numbers, (number) => (number === 65535 ? NaN : number / 65534));
}

/**
 * Returns the point nearest to a place, the last of equals, which is painted on top; -1 if none is within reach.
 * @param {Places} places @param {Place} place @param {Place} size of the axes, in pixels @param {number} reach in pixels
 */
export function findNearest({ xs, ys }, [x, y], [width, height], reach) {
  let nearest = -1;
  let least = reach * reach;
  for (let index = 0; index < xs.length; index += 1) {
    const distance = ((xs[index] - x) * width) ** 2 + ((ys[index] - y) * height) ** 2;
    if (distance <= least) {
      least = distance;
      nearest = index;
    }
  }
  return nearest;
}

// The points that are shown in the order of x and in that of y.
function sortPlaces({ xs, ys }) {
  const shown = Uint32Array.from(xs.keys()).filter((index) => !Number.isNaN(xs[index]));
  return [xs, ys].map((values) => shown.slice().sort((one, other) => values[one] - values[other] || one - other));
}

const percent = (share) => `${100 * share}%`;

// Beside the point, on the side where there is more room.
function Tip({ pointed: { title, text, facts }, left, top }) {
  const side = left > 0.5 ? { right: `calc(${percent(1 - left)} + 14px)` } : { left: `calc(${percent(left)} + 14px)` };
  return html`<div class="famnb-tip" style=${{ ...side, top: percent(Math.min(top, 0.5)) }}>
    <strong>${title}</strong>${text && html`<p class="famnb-words">${text}</p>`}
    <dl class="famnb-facts">${facts.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>
  </div>`;
}

/** @param {{area: readonly Place[] | null, rings: {place: Place, radius: number}[]}} props */
function Marks({ area, rings }) {
  const [[x0, y0], [x1, y1]] = area ?? [[0, 0], [0, 0]];
  const [x, y, width, height] = [Math.min(x0, x1), Math.min(y0, y1), Math.abs(x1 - x0), Math.abs(y1 - y0)].map(percent);
  return html`<g>
    ${area && html`<rect class="famnb-area" x=${x} y=${y} width=${width} height=${height} />`}
    ${rings.map(({ place, radius }) => html`<circle class="famnb-ring" cx=${percent(place[0])} cy=${percent(place[1])} r=${radius} />`)}
  </g>`;
}

/**
 * @param {object} props
 * @param {import("../protocol.js").PlotView} props.plot
 * @param {Span[] | null} props.spans the brushed parts of x and y; null if all is chosen
 * @param {(spans: Span[] | null) => void} props.brush
 * @param {(index: number) => void} props.open
 * @param {import("../protocol.js").PointView | null} props.described the point that Python has described last
 */
export function Scatter({ plot, spans, brush, open, described }) {
  const { outbox, root } = useTool();
  const { picture } = plot;
  const frame = useRef(/** @type {any} */ (null));
  const wide = useWidth(frame);
  useEffect(() => {
    if (wide) outbox.send("draw", { width: Math.round(wide), dark: isDark(root) });
  }, [Math.round(wide / REDRAW_PX)]);
  const places = useMemo(() => ({ xs: readShares(plot.xs), ys: readShares(plot.ys) }), [plot.xs, plot.ys]);
  const [pointed, setPointed] = useState(-1);
  const [corner, setCorner] = useState(-1); // the point at the first corner of an area that is chosen by keys
  const [drag, setDrag] = useState(/** @type {Place[] | null} */ (null)); // two corners of an area
  // At once, but one at a time: a pointer on its way passes points faster than Python describes them.
  const lastPoint = useRef(-1);
  const isAsking = outbox.isPending("describe_point");
  useLayoutEffect(() => {
    if (isAsking || lastPoint.current === pointed) return;
    lastPoint.current = pointed;
    if (pointed >= 0) outbox.send("describe_point", { point: pointed });
  }, [pointed, isAsking]);
  const choose = (from, to) => brush([0, 1].map((axis) => /** @type {Span} */ ([Math.min(from[axis], to[axis]), Math.max(from[axis], to[axis])])));
  const clear = () => {
    setCorner(-1);
    brush(null);
  };
  const keys = useKeys({ places, pointed, setPointed, corner, setCorner, isBrushed: Boolean(spans), open, choose, clear });
  const pointer = usePointer({ places, setPointed, isReached: keys.isReached, drag, setDrag, open, choose });
  const area = drag ?? (spans && [0, 1].map((end) => /** @type {Place} */ ([spans[0][end], spans[1][end]])));
  const rings = [[corner, 9], [pointed, 6]].flatMap(([index, radius]) => {
    const place = /** @type {Place} */ ([places.xs[index], places.ys[index]]);
    return index >= 0 && !Number.isNaN(place[0]) ? [{ place, radius }] : [];
  });
  const isDescribed = described?.point === pointed && !Number.isNaN(places.xs[pointed]);
  const label = `${plot.label}, ${places.xs.length.toLocaleString("en")} points`;
  const over = picture && { left: percent(picture.left), top: percent(picture.top), width: percent(picture.width), height: percent(picture.height) };
  return html`<div class="famnb-scatter" ref=${frame}>
    ${picture &&
    html`<img src=${picture.url} alt="" />
      <div class="famnb-over" style=${over}>
        <svg
          tabindex="0"
          role="application"
          aria-label=${`${label}; arrow keys go from point to point, Enter opens one, Space marks two corners of an area`}
          ...${pointer}
          onKeyDown=${keys.onKeyDown}
          onBlur=${keys.onBlur}
        ><${Marks} area=${area} rings=${rings} /></svg>
        <div role="status">
          ${isDescribed && html`<${Tip} pointed=${described} left=${places.xs[pointed]} top=${places.ys[pointed]} />`}
        </div>
      </div>`}
  </div>`;
}

// By mouse, pen or finger: a point is pointed at and opened, or an area is brushed.
function usePointer({ places, setPointed, isReached, drag, setDrag, open, choose }) {
  const start = useRef(/** @type {Place | null} */ (null)); // where it was pressed
  const read = ({ clientX, clientY, currentTarget }) => {
    const { left, top, width, height } = currentTarget.getBoundingClientRect();
    const clamp = (share) => Math.min(Math.max(share, 0), 1);
    return { place: /** @type {Place} */ ([clamp((clientX - left) / width), clamp((clientY - top) / height)]), size: /** @type {Place} */ ([width, height]) };
  };
  const end = () => {
    start.current = null;
    setDrag(null);
  };
  return {
    onPointerDown: (event) => {
      if (event.button !== 0) return;
      start.current = read(event).place;
      event.currentTarget.setPointerCapture(event.pointerId);
    },
    onPointerMove: (event) => {
      const { place, size } = read(event);
      const from = start.current;
      if (from && (drag || Math.hypot((place[0] - from[0]) * size[0], (place[1] - from[1]) * size[1]) > DRAG_PX)) {
        setPointed(-1);
        setDrag([from, place]);
      } else setPointed(findNearest(places, place, size, REACH));
    },
    onPointerUp: (event) => {
      if (!start.current) return;
      const { place, size } = read(event);
      if (drag) choose(start.current, place);
      else {
        const index = findNearest(places, place, size, REACH);
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
function useKeys({ places, pointed, setPointed, corner, setCorner, isBrushed, open, choose, clear }) {
  const isReached = useRef(false); // whether the point was reached by keys, so that it stays where the pointer leaves
  const sorted = useRef(/** @type {any} */ ({})); // made when it is needed
  const move = ([axis, step], isFast) => {
    if (sorted.current.places !== places) sorted.current = { places, orders: sortPlaces(places) };
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
    choose([Math.min(...xs) - AROUND, Math.min(...ys) - AROUND], [Math.max(...xs) + AROUND, Math.max(...ys) + AROUND]);
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
