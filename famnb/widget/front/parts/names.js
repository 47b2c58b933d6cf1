// Names where there is little room: what tells them apart stays.

const SEPARATOR = " · ";

/** Returns names without the parts that all of them begin with. @param {string[]} names */
export function shortenNames(names) {
  const parts = names.map((name) => name.split(SEPARATOR));
  let shared = 0;
  while (names.length > 1 && parts.every((list) => list.length > shared + 1 && list[shared] === parts[0][shared])) shared += 1;
  return parts.map((list) => list.slice(shared).join(SEPARATOR));
}
