// Names where there is little room: what tells them apart stays.

const SEPARATOR = " · ";

/** Returns a text with its middle left out where it is longer than `length`; most of its end stays. @param {string} text @param {number} length */
export function cutMiddle(text, length) {
  if (text.length <= length) return text;
  const end = Math.ceil((length - 1) * 0.6);
  return `${text.slice(0, length - 1 - end).trimEnd()}…${text.slice(-end).trimStart()}`;
}

/** Returns names without the parts that all of them begin with, each at most `length` characters long. @param {string[]} names @param {number} length */
export function shortenNames(names, length) {
  const parts = names.map((name) => name.split(SEPARATOR));
  let shared = 0;
  while (names.length > 1 && parts.every((list) => list.length > shared + 1 && list[shared] === parts[0][shared])) shared += 1;
  return parts.map((list) => cutMiddle(list.slice(shared).join(SEPARATOR), length));
}
