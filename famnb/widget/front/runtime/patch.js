// How one view becomes the next: view.py says what a delta is. Whatever a delta does not name stays the same object, so a
// component can see by identity whether it has to be rendered.

/**
 * @typedef {unknown[] | {[name: string]: any}} Delta
 * @typedef {(value: any) => any} Revive makes the value of a view of its JSON
 */

/**
 * Returns the value that a delta makes of another; the other is left as it is.
 * @param {any} value @param {Delta} delta @param {Revive} revive
 */
export function applyDelta(value, delta, revive) {
  if (Array.isArray(delta)) return revive(delta[0]);
  if (Array.isArray(value)) return applyToItems(value, delta, revive);
  const next = { ...value };
  for (const [name, change] of Object.entries(delta)) next[name] = applyDelta(value[name], change, revive);
  return next;
}

/** @param {{key: string}[]} items @param {{[key: string]: any}} delta @param {Revive} revive */
function applyToItems(items, delta, revive) {
  const byKey = new Map(items.map((item) => [item.key, item]));
  const keys = delta.$ ?? byKey.keys();
  return Array.from(keys, (key) => (Object.hasOwn(delta, key) ? applyDelta(byKey.get(key), delta[key], revive) : byKey.get(key)));
}

/**
 * Returns a value of a view: what travels beside it is put in its place.
 * @param {any} value as JSON @param {(id: string) => object} growing @param {DataView[]} buffers
 * @returns {any}
 */
export function reviveValue(value, growing, buffers) {
  if (Array.isArray(value)) return value.map((item) => reviveValue(item, growing, buffers));
  if (value === null || typeof value !== "object") return value;
  if ("$growing" in value) return growing(value.$growing);
  if ("$bytes" in value) return buffers[value.$bytes];
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, reviveValue(item, growing, buffers)]));
}
