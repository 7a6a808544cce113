// Two models on one image: label, score and map of each; and the images on which they differ most.

import { ROOT, ask, imageOf, images, pathFor } from "./api.js";
import { byId, figure, options } from "./element.js";
import { patient } from "./latest.js";
import { percent } from "./numbers.js";
import { showPart } from "./part.js";
import { loadMap } from "./picture.js";
import { atMost } from "./pool.js";
import { visit } from "./siblings.js";

const AT_ONCE = 2;

/** What another model says of an image. */
const answer = ({ address, model }, { file }, signal) => ask(address + pathFor(model.manifest.labels), file, signal);

/** `others`: the models of the address, [{name, address}], with this one. */
export function showVersus(state, others) {
  const [own, rivals] = [others.find(({ address }) => address === ROOT), others.filter(({ address }) => address !== ROOT)];
  if (!own || !rivals.length) return;
  const [choice, switching] = [byId("rival"), byId("switch")];
  byId("versus-part").hidden = byId("switch-label").hidden = false;
  choice.append(...options(rivals.map(({ name, address }) => [address, name])));
  switching.append(...options(others.map(({ name, address }) => [address, name])));
  switching.value = ROOT;
  switching.addEventListener("change", () => visit(switching.value, images().map(({ file }) => file)));
  choice.addEventListener("change", () => state.say("rival"));
  const rival = () => rivals.find(({ address }) => address === choice.value);

  const side = async ({ name, address, model }, image, said, signal) => {
    const method = model.manifest.labels.length ? "evidence" : "class_token";
    const map = `${address}attention/${encodeURIComponent(said.id)}?method=${method}&format=json`;
    const { canvas } = await loadMap(map, image.id, `The map of ${name}`, signal);
    const [best] = said.predictions ?? [];
    return figure(name, best ? `${best.label}, ${percent(best.score)}` : "", canvas);
  };

  showPart(state, "versus-part", {
    names: ["id", "rival"],
    load: async ({ id }, signal) => {
      const image = imageOf(id);
      if (!image) return [];
      const result = await answer(rival(), image, signal);
      return Promise.all([side(own, image, { ...image.result, id }, signal), side(rival(), image, result, signal)]);
    },
    show: (sides) => byId("versus").replaceChildren(...sides),
  });

  byId("versus-all").addEventListener("click", async () => {
    const [asked, all, running] = [rival(), images(), atMost(AT_ONCE)];
    let count = 0;
    const work = async (image) => {
      byId("versus-said").textContent = `${++count} of ${all.length} images …`;
      const result = await patient(() => answer(asked, image)).catch(() => undefined);
      if (result) Object.assign(image, apart(asked.name, image.result, result));
    };
    await Promise.all(all.map((image) => running(() => work(image))));
    byId("versus-said").textContent = "";
    const { sort } = byId("sieve").elements;
    sort.value = "other";
    sort.selectedOptions[0].hidden = false;
    state.set({ tab: "all" });
  });
  state.say("rival"); // an image may be shown already
}

/** What is said of the other model's answer, and how far apart the two scores of the first label are. */
function apart(name, { predictions: [best] = [] }, { predictions: others = [] }) {
  if (!best || !others.length) return {};
  const score = others.find(({ label }) => label === best.label)?.score ?? 0;
  return { said: `${name}: ${others[0].label} ${percent(others[0].score)}`, apart: Math.abs(best.score - score) + (others[0].label !== best.label) };
}
