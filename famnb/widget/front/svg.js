// Shapes and texts of drawings.

/** Returns a shape. @param {string} tag @param {object} attributes */
export function shape(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

/** Returns a text of a drawing. @param {string} text @param {object} attributes */
export function writeText(text, attributes) {
  const element = shape("text", attributes);
  element.textContent = text;
  return element;
}
