// Builds the page from its parts.

import { showAlike } from "./alike.js";
import { fetchLinks, json } from "./api.js";
import { Ask } from "./ask.js";
import { Classes } from "./classes.js";
import { copyText } from "./clipboard.js";
import { Controls } from "./controls.js";
import { Cover } from "./cover.js";
import { byId } from "./element.js";
import { showEmbedding } from "./embedding.js";
import { Folder } from "./folder.js";
import { showGallery } from "./gallery.js";
import { Heatmap } from "./heatmap.js";
import { listenToKeys } from "./keyboard.js";
import { Labels } from "./labels.js";
import { Latest } from "./latest.js";
import { reportAddress } from "./maps.js";
import { loadModel } from "./model.js";
import { showPhrases } from "./phrases.js";
import { playLayers } from "./play.js";
import { Queue } from "./queue.js";
import { showReceipt } from "./receipt.js";
import { showReport } from "./report.js";
import { showSamples } from "./samples.js";
import { unlike } from "./sentence.js";
import { handed, siblings } from "./siblings.js";
import { State } from "./state.js";
import { Stock } from "./stock.js";
import { isCompared, showTabs } from "./tabs.js";
import { explainTerms } from "./terms.js";
import { Verification } from "./verification.js";
import { showVersus } from "./versus.js";
import { Wall } from "./wall.js";

const MANY = 9; // files of a drop, which are shown all at once

async function main() {
  const loading = loadModel();
  const naming = loading.then(({ manifest }) => new Classes(manifest.labels));
  const queue = new Queue(naming); // it takes files before the model is known
  const model = await loading;
  const classes = await naming;
  const shape = model.manifest;
  const tabs = shape.labels.length ? ["answer", "compare", "what-if", "inside", "model", "all"] : ["compare", "answer", "inside", "model", "all"];
  const { says = "", begin } = model.judged ?? {};
  byId("judged").textContent = says;
  const state = new State({ ...(begin ?? { method: shape.labels.length ? "evidence" : "class_token" }), tabs });
  state.addEventListener("change", ({ detail }) => {
    if (detail.has("id")) present(state.values.id); // first, as others ask for labels that are missing
  });
  document.body.classList.toggle("headless", !shape.labels.length);
  showTabs(state, tabs);
  const stock = new Stock(shape);
  const controls = new Controls(state, model, classes);
  const labels = new Labels(state, classes);
  const heatmap = new Heatmap(state, classes, stock);
  new Wall(state, shape, stock);
  showReport(state, { shape, classes });
  new Ask(state, () => queue.images);
  byId("alike-part").hidden = !shape.directions;
  if (shape.directions) showAlike(state, () => queue.images);
  showEmbedding(state, isCompared);
  if (classes.count) {
    new Cover(state, { heatmap, classes });
    showReceipt(state, classes);
    new Verification(state, classes);
  }
  const folder = new Folder(state, { images: () => queue.images, classes, least: model.least_familiarity, choose });
  listenToKeys(state, shape, (step) => folder.step(step));
  playLayers(state, shape);
  const labelling = new Latest();

  function label(predictions, file = "") {
    const likely = [...predictions].sort((a, b) => b.score - a.score); // those of a report are in the order of the POST
    labels.show(likely, file);
    controls.likely = heatmap.likely = likely;
  }

  function present(id) {
    document.body.classList.toggle("empty", !id);
    document.body.classList.remove("waiting");
    queue.mark(id);
    const added = queue.find(id);
    const { predictions = [], image, familiarity = 1 } = added?.result ?? {};
    if (image) heatmap.reserve(image);
    label(predictions, added?.name);
    labelling.cancel();
    if (id && !added) // it comes from a link
      labelling.run({
        load: (signal) => json(reportAddress({ id, label: "" }), { signal }),
        show: (report) => label(report.predictions),
        fail() {}, // the map shows the reason
      });
    const unfamiliar = familiarity < model.least_familiarity;
    byId("unfamiliar").textContent = unfamiliar ? unlike(shape.familiarity, familiarity) : "";
  }

  /** A label that was typed is explained in the next image too. */
  function choose(id, more) {
    const { label, prompt } = state.values;
    state.set({ id, label: prompt && label, against: "", other: "", ...more });
  }

  let many = false; // files were added at once
  queue.addEventListener("choose", ({ detail: { id } }) => {
    const first = !state.values.id && { tab: tabs[0] };
    choose(id, many ? { tab: "all" } : first);
    many = false;
  });
  queue.addEventListener("begin", ({ detail: files }) => {
    many = files.length >= MANY;
    document.body.classList.remove("empty");
    document.body.classList.add("waiting");
    heatmap.preview(files[0]);
  });
  queue.addEventListener("end", () => {
    present(state.values.id);
    heatmap.draw({ fresh: true, waitMs: 0 });
  });
  if (shape.text) showPhrases(state);
  showSamples(shape.labels, queue);
  byId("copy").addEventListener("click", () => copyText(state.link, byId("copied")));
  queue.addEventListener("add", () => state.say("added"));

  fetchLinks();
  explainTerms();
  showGallery(state);
  state.announce();
  queue.add(await handed());
  showVersus(state, await siblings(), () => queue.images);
}

main();
