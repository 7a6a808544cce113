// Builds the page from its parts.

import { showAlike } from "./alike.js";
import { fetchLinks } from "./api.js";
import { showAsk } from "./ask.js";
import { Classes } from "./classes.js";
import { copyText } from "./clipboard.js";
import { showControls } from "./controls.js";
import { showCover } from "./cover.js";
import { byId } from "./element.js";
import { showEmbedding } from "./embedding.js";
import { showFolder } from "./folder.js";
import { showGallery } from "./gallery.js";
import { Heatmap } from "./heatmap.js";
import { listenToKeys } from "./keyboard.js";
import { showLabels } from "./labels.js";
import { changesToImage } from "./maps.js";
import { loadModel } from "./model.js";
import { showPhrases } from "./phrases.js";
import { playLayers } from "./play.js";
import { Queue } from "./queue.js";
import { showReceipt } from "./receipt.js";
import { showReport } from "./report.js";
import { showSamples } from "./samples.js";
import { handed, siblings } from "./siblings.js";
import { State } from "./state.js";
import { Stock } from "./stock.js";
import { showTabs } from "./tabs.js";
import { explainTerms } from "./terms.js";
import { showVerification } from "./verification.js";
import { showVersus } from "./versus.js";
import { showWall } from "./wall.js";

const MANY = 9; // files of a drop, which are shown all at once

async function main() {
  const loading = loadModel();
  const naming = loading.then(({ manifest }) => new Classes(manifest.labels));
  const queue = new Queue(naming); // it takes files before the model is known
  const model = await loading;
  const classes = await naming;
  const shape = model.manifest;
  const named = shape.labels.length > 0;
  const tabs = named ? ["answer", "compare", "what-if", "inside", "model", "all"] : ["compare", "answer", "inside", "model", "all"];
  const { says = "", begin } = model.judged ?? {};
  byId("judged").textContent = says;
  const state = new State({ ...(begin ?? { method: named ? "evidence" : "class_token" }), tabs });
  const { classList } = document.body;
  classList.toggle("headless", !named);
  state.follow(({ id }) => {
    classList.toggle("empty", !id);
    classList.remove("waiting");
    queue.mark(id);
  }, ["id", "end"]);

  showTabs(state, tabs);
  showLabels(state, model, classes); // before all that ask for labels that are missing
  showControls(state, model, classes);
  const stock = new Stock(shape, classes);
  const heatmap = new Heatmap(state, classes, stock);
  showWall(state, shape, stock);
  showReport(state, shape, classes);
  showAsk(state);
  byId("alike-part").hidden = !shape.directions;
  if (shape.directions) showAlike(state);
  showEmbedding(state);
  if (named) {
    showCover(state, heatmap, classes);
    showReceipt(state, classes);
    showVerification(state, classes);
  }
  if (shape.text) showPhrases(state);
  listenToKeys(state, shape, showFolder(state, classes, model.least_familiarity));
  playLayers(state, shape);
  showSamples(shape.labels, queue);
  showGallery(state);

  let many = false; // files were added at once
  queue.addEventListener("begin", ({ detail: files }) => {
    many = files.length >= MANY;
    classList.remove("empty");
    classList.add("waiting");
    heatmap.preview(files[0]);
  });
  queue.addEventListener("add", () => state.say("added"));
  queue.addEventListener("choose", ({ detail: { id } }) => {
    const first = !state.values.id && { tab: tabs[0] };
    state.set({ ...changesToImage(id, state.values), ...(many ? { tab: "all" } : first) });
    many = false;
  });
  queue.addEventListener("end", () => state.say("end"));
  byId("copy").addEventListener("click", () => copyText(state.link, byId("copied")));

  fetchLinks();
  explainTerms();
  state.announce();
  queue.add(await handed());
  showVersus(state, await siblings());
}

main();
