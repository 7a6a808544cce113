// Builds elements. Text is added as text and never parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, { style = {}, ...attributes }, children) {
  for (const [name, value] of Object.entries(style)) node.style.setProperty(name, value);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child != null));
  return node;
}

/** An HTML element. `onclick` and the like are listeners; `style` is an object of properties, as the policy of the page
 * forbids it as text; `true` sets an empty attribute, `false` leaves it out.
 */
export const element = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);

/** An SVG element, by the same rules. */
export const drawing = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

/** A canvas that shows pixels. */
export function canvasOf(pixels, attributes) {
  const canvas = element("canvas", attributes);
  show(canvas, pixels);
  return canvas;
}

/** Let a canvas show pixels. */
export function show(canvas, pixels) {
  [canvas.width, canvas.height] = [pixels.width, pixels.height];
  canvas.getContext("2d").putImageData(pixels, 0, 0);
}

/** An entry of a list of images: a button with a picture and what is said of it. */
export const imageButton = ({ source, alt = "", ...attributes }, ...said) =>
  element("li", {}, element("button", { type: "button", ...attributes }, element("img", { src: source, alt, loading: "lazy" }), ...said));

/** A figure under its title and what is said of it. */
export const figure = (title, said, ...content) =>
  element("figure", {}, element("figcaption", {}, element("b", {}, title), ` ${said}`), ...content);

/** The options of a <select>: [[value, text]]. */
export const options = (choices) => choices.map(([value, text]) => element("option", { value }, text));

/** A label that may break after its underscores. */
export const breakable = (label) => label.split(/(?<=_)/).flatMap((word) => [word, element("wbr")]).slice(0, -1);

/** The element with this id. */
export const byId = (id) => document.getElementById(id);
