// Which of many points is nearest to the pointer.

const CELL = 12; // pixels of a cell of the index: few cells are within reach, and few points in a cell

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
  /** Returns the nearest place within reach, the last of equals, which is painted on top; -1 if there is none. */
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
