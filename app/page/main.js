// Builds the page from its parts.

import { showAlike } from "./alike.js";
import { fetchLinks } from "./api.js";
import { showAsk } from "./ask.js";
import { Classes } from "./classes.js";
import { showControls } from "./controls.js";
import { showCover } from "./cover.js";
import { byId } from "./element.js";
import { showEmbedding } from "./embedding.js";
import { showFolder } from "./folder.js";
import { showGallery } from "./gallery.js";
import { showMap } from "./heatmap.js";
import { listenToKeys } from "./keyboard.js";
import { showLabels } from "./labels.js";
import { loadModel } from "./model.js";
import { showPhrases } from "./phrases.js";
import { playLayers } from "./play.js";
import { listenToFiles } from "./queue.js";
import { showReceipt } from "./receipt.js";
import { showReport } from "./report.js";
import { showSamples } from "./samples.js";
import { handed, siblings } from "./siblings.js";
import { State } from "./state.js";
import { stockOf } from "./stock.js";
import { showTabs } from "./tabs.js";
import { explainTerms } from "./terms.js";
import { copyText } from "./toast.js";
import { showVerification } from "./verification.js";
import { showVersus } from "./versus.js";
import { showWall } from "./wall.js";

/** Its state, and the parts that show it. */
async function build() {
  const model = await loadModel();
  const { manifest: shape } = model;
  const named = shape.labels.length > 0;
  const tabs = named ? ["answer", "compare", "what-if", "inside", "model", "all"] : ["compare", "answer", "inside", "model", "all"];
  const { says = "", begin } = model.judged ?? {};
  const state = new State({ ...(begin ?? { method: named ? "evidence" : "class_token" }), tabs });
  const classes = new Classes(shape.labels);
  const stock = stockOf(shape, classes);
  byId("judged").textContent = says;
  document.body.classList.toggle("headless", !named);
  showTabs(state, tabs);
  showLabels(state, model, classes); // before all that ask for labels that are missing
  showControls(state, model, classes);
  const map = showMap(state, classes, stock);
  showWall(state, shape, stock);
  showReport(state, classes);
  showAsk(state);
  byId("alike-part").hidden = !shape.directions;
  if (shape.directions) showAlike(state);
  showEmbedding(state);
  if (named) {
    showCover(state, map, classes);
    showReceipt(state, classes);
    showVerification(state, classes);
  }
  if (shape.text) showPhrases(state);
  listenToKeys(state, shape, showFolder(state, classes, model.least_familiarity));
  playLayers(state, shape);
  showGallery(state);
  addEventListener("submit", (event) => event.preventDefault()); // a field changes the page as it is typed
  byId("copy").addEventListener("click", () => copyText(state.link));
  return { state, classes, map, tabs };
}

async function main() {
  const page = build();
  const add = listenToFiles(page); // before the model is known
  const { state, classes } = await page;
  showSamples(classes.labels, add);
  fetchLinks();
  explainTerms();
  state.say(...Object.keys(state.values)); // all parts show what the address says
  add(await handed());
  showVersus(state, await siblings());
}

main();
