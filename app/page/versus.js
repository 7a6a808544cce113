// Two models on one image: label, score and map of each; and the images on which they differ most.

import { ROOT, json } from "./api.js";
import { mapCanvas } from "./draw.js";
import { byId, element } from "./element.js";
import { follow, patient } from "./latest.js";
import { percent } from "./numbers.js";
import { pictureOf } from "./picture.js";
import { visit } from "./siblings.js";
import { isCompared } from "./tabs.js";

const AT_ONCE = 2;

/** `others`: the models of the address, [{name, address}], with this one. `images` gives those that were added. */
export function showVersus(state, others, images) {
  const [own, rivals] = [others.find(({ address }) => address === ROOT), others.filter(({ address }) => address !== ROOT)];
  const choice = byId("rival");
  const switching = byId("switch");
  const files = () => images().map(({ file }) => file);
  byId("versus-part").hidden = !own || !rivals.length;
  byId("switch-label").hidden = byId("versus-part").hidden;
  if (!own || !rivals.length) return;
  const options = (list) => list.map(({ name, address }) => element("option", { value: address }, name));
  choice.append(...options(rivals));
  switching.append(...options(others));
  switching.value = ROOT;
  switching.addEventListener("change", () => visit(switching.value, files()));
  choice.addEventListener("change", () => state.say("rival"));
  const rival = () => rivals.find(({ address }) => address === choice.value);

  const side = async ({ name, address, model }, image, id, signal) => {
    const method = model.manifest.labels.length ? "evidence" : "class_token";
    const numbers = await json(`${address}attention/${encodeURIComponent(id)}?method=${method}&format=json`, { signal });
    return { name, canvas: mapCanvas(numbers, await pictureOf(image.id), `The map of ${name}`) };
  };

  follow(state, ["id", "rival"], {
    needed: isCompared,
    load: async ({ id }, signal) => {
      const image = images().find((one) => one.id === id);
      if (!image) return [];
      const result = await answer(rival(), image, signal);
      const both = [[own, id, image.result], [rival(), result.id, result]];
      return Promise.all(both.map(async ([model, its, said]) => ({ said, ...(await side(model, image, its, signal)) })));
    },
    show: (sides) => byId("versus").replaceChildren(...sides.map(figure)),
    fail: (problem) => byId("versus").replaceChildren(problem.message),
  });

  byId("versus-all").addEventListener("click", async () => {
    const [asked, all] = [rival(), images()];
    const rest = [...all];
    const work = async () => {
      for (let image = rest.shift(); image; image = rest.shift()) {
        const result = await patient(() => answer(asked, image)).catch(() => undefined);
        if (result) Object.assign(image, apart(asked.name, image.result, result));
        byId("versus-said").textContent = `${all.length - rest.length} of ${all.length} images …`;
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    byId("versus-said").textContent = "";
    const { sort } = byId("sieve").elements;
    sort.value = "other";
    sort.selectedOptions[0].hidden = false;
    state.set({ tab: "all" });
  });
  state.say("rival"); // an image may be shown already
}

/** What another model says of an image. */
async function answer({ address, model }, { file }, signal) {
  const path = model.manifest.labels.length ? "classify" : "embed?attention=true";
  const headers = { "Content-Type": "application/octet-stream" };
  return (await json(address + path, { method: "POST", body: file, headers, signal })).results[0];
}

/** What is said of the other model's answer, and how far apart the two scores of the first label are. */
function apart(name, { predictions: [best] = [] }, { predictions: others = [] }) {
  if (!best || !others.length) return {};
  const score = others.find(({ label }) => label === best.label)?.score ?? 0;
  return { said: `${name}: ${others[0].label} ${percent(others[0].score)}`, apart: Math.abs(best.score - score) + (others[0].label !== best.label) };
}

function figure({ name, said: { predictions: [best] = [] }, canvas }) {
  const title = best ? `${best.label}, ${percent(best.score)}` : "";
  return element("figure", {}, canvas, element("figcaption", {}, element("b", {}, name), ` ${title}`));
}
