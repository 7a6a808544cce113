// Builds the page from its parts.

import { fetchLinks } from "./api.js";
import { Classes } from "./classes.js";
import { Controls } from "./controls.js";
import { Cover } from "./cover.js";
import { byId } from "./element.js";
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
import { showTabs } from "./tabs.js";
import { explainTerms } from "./terms.js";
import { Verification } from "./verification.js";
import { Wall } from "./wall.js";

async function main() {
  const loading = loadModel();
  const queue = new Queue(loading.then(({ manifest }) => manifest)); // it takes files before the model is known
  const model = await loading;
  const shape = model.manifest;
  const [method, tabs] = shape.labels.length
    ? ["evidence", ["answer", "what-if", "inside"]]
    : ["class_token", ["answer", "inside"]];
  const state = new State({ method, tabs });
  document.body.classList.toggle("headless", !shape.labels.length);
  showTabs(state, tabs);
  const classes = new Classes(shape.labels);
  const controls = new Controls(state, shape, classes);
  const labels = new Labels(state, classes);
  const heatmap = new Heatmap(state);
  new Wall(state, shape);
  showReport(state, shape, {
    isUnlabelled: (id) => id !== labelled,
    loaded: ({ predictions }) => {
      const { id } = state.values;
      if (id !== labelled) label(id, predictions);
    },
  });
  if (shape.labels.length) {
    new Cover(state, heatmap);
    showReceipt(state);
    new Verification(state);
  }
  listenToKeys(state, shape);

  let labelled = ""; // id of the image whose labels are shown

  function label(id, predictions) {
    labelled = id;
    const likely = [...predictions].sort((a, b) => b.score - a.score); // a report has its own label first
    labels.show(likely, queue.nameOf(id));
    byId("unfamiliar").textContent = "";
    controls.likely = likely;
  }

  function choose({ id, predictions = [], image, familiarity = 1 }) {
    heatmap.reserve(image);
    label(id, predictions);
    if (familiarity < model.least_familiarity)
      byId("unfamiliar").textContent = unlike(shape.familiarity.pictures, familiarity);
    state.set({ id, label: "", against: "", ...(!state.values.id && { tab: "answer" }) });
  }

  state.addEventListener("change", ({ detail }) => {
    const { id } = state.values;
    document.body.classList.toggle("empty", !id);
    if (detail.has("id")) queue.mark(id);
    if (id !== labelled) label("", []); // it comes from a link, and its labels with the report
  });

  queue.addEventListener("choose", ({ detail }) => choose(detail));
  showSamples(shape.labels, (files) => queue.add(files));
  byId("copy").addEventListener("click", () => copy(state.link));

  fetchLinks();
  explainTerms();
  showGallery(state);
  state.announce();
}

async function copy(link) {
  try {
    await navigator.clipboard.writeText(link);
    byId("copied").textContent = "Copied.";
  } catch {
    byId("copied").textContent = "The browser blocked copying. Copy the address from the address bar.";
  }
}

main();
