// The models behind one address, for a person: loaded by the list of a balancer, whose links it replaces.

import { element } from "./element.js";
import { modelsAt } from "./siblings.js";

const NAMED = 6; // labels

const style = (name) => element("link", { rel: "stylesheet", href: new URL(name, import.meta.url) });

const card = ({ name, address, model: { manifest } }) =>
  element(
    "li",
    {},
    element(
      "a",
      { href: address },
      element("img", { src: `${address}model/inspect/filters?format=png`, alt: "", onerror: ({ target }) => target.remove() }),
      element("b", {}, name),
      element("span", {}, saidOf(manifest)),
      element("small", {}, `${manifest.layers} layers of ${manifest.heads} heads, ${manifest.image.size.join(" × ")} pixels, ${manifest.precision}`),
    ),
  );

function saidOf({ labels }) {
  const more = labels.length > NAMED ? ` and ${(labels.length - NAMED).toLocaleString("en")} more` : "";
  return labels.length ? `${labels.slice(0, NAMED).join(", ")}${more}` : "no labels: embeddings and maps";
}

const models = await modelsAt(location.pathname);
if (models.length) {
  document.head.append(...["palette.css", "style.css", "list.css"].map(style));
  document.body.replaceChildren(element("main", {}, element("h1", {}, "Models"), element("ul", { class: "models" }, ...models.map(card))));
}
