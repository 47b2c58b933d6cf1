// What drawings share.

import { useLayoutEffect, useState } from "../vendor/preact.js";

/** Returns the width of an element in pixels; 0 until it is known. @param {{current: Element}} ref */
export function useWidth(ref) {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([{ contentRect }]) => setWidth(contentRect.width));
    observer.observe(ref.current);
    return () => observer.disconnect();
  }, []);
  return width;
}
