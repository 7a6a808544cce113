// Builds the page from its parts.

import { showAlike } from "./alike.js";
import { fetchLinks } from "./api.js";
import { Ask } from "./ask.js";
import { Classes } from "./classes.js";
import { copyText } from "./clipboard.js";
import { Controls } from "./controls.js";
import { Cover } from "./cover.js";
import { byId } from "./element.js";
import { showEmbedding } from "./embedding.js";
import { showGallery } from "./gallery.js";
import { Heatmap } from "./heatmap.js";
import { listenToKeys } from "./keyboard.js";
import { Labels } from "./labels.js";
import { loadModel } from "./model.js";
import { Queue } from "./queue.js";
import { showReceipt } from "./receipt.js";
import { showReport } from "./report.js";
import { showSamples } from "./samples.js";
import { unlike } from "./sentence.js";
import { State } from "./state.js";
import { Stock } from "./stock.js";
import { isCompared, showTabs } from "./tabs.js";
import { explainTerms } from "./terms.js";
import { Verification } from "./verification.js";
import { Wall } from "./wall.js";

async function main() {
  const loading = loadModel();
  const naming = loading.then(({ manifest }) => new Classes(manifest.labels));
  const queue = new Queue(naming); // it takes files before the model is known
  const model = await loading;
  const classes = await naming;
  const shape = model.manifest;
  const tabs = shape.labels.length ? ["answer", "compare", "what-if", "inside"] : ["compare", "answer", "inside"];
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
  showReport(state, { shape, classes }, {
    isUnlabelled: (id) => id !== labelled,
    loaded: ({ predictions }) => {
      const { id } = state.values;
      if (id !== labelled) label(id, predictions);
    },
  });
  new Ask(state, () => queue.images);
  byId("alike-part").hidden = !shape.directions;
  if (shape.directions) showAlike(state, () => queue.images);
  showEmbedding(state, isCompared);
  if (classes.count) {
    new Cover(state, { heatmap, classes });
    showReceipt(state, classes);
    new Verification(state, classes);
  }
  listenToKeys(state, shape);

  let labelled = ""; // id of the image whose labels are shown

  function label(id, predictions, file = "") {
    labelled = id;
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
    label(added ? id : "", predictions, added?.name); // without a file it comes from a link, and its labels with the report
    const unfamiliar = familiarity < model.least_familiarity;
    byId("unfamiliar").textContent = unfamiliar ? unlike(shape.familiarity, familiarity) : "";
  }

  queue.addEventListener("choose", ({ detail: { id } }) =>
    state.set({ id, label: "", against: "", other: "", ...(!state.values.id && { tab: tabs[0] }) }),
  );
  queue.addEventListener("begin", ({ detail: file }) => {
    document.body.classList.remove("empty");
    document.body.classList.add("waiting");
    heatmap.preview(file);
  });
  queue.addEventListener("end", () => {
    present(state.values.id);
    heatmap.draw({ fresh: true, waitMs: 0 });
  });
  showSamples(shape.labels, queue);
  byId("copy").addEventListener("click", () => copyText(state.link, byId("copied")));
  queue.addEventListener("add", () => state.say("added"));

  fetchLinks();
  explainTerms();
  showGallery(state);
  state.announce();
}

main();
