// All images at once: in the order that is asked for, those of one label alone, each with its map, and as a table.

import { imageOf, images, json } from "./api.js";
import { mapCanvas } from "./draw.js";
import { breakable, byId, element, imageButton, options } from "./element.js";
import { patient } from "./latest.js";
import { STYLE, changesToImage, mapAddress, scaled } from "./maps.js";
import { METHODS } from "./methods.js";
import { percent } from "./numbers.js";
import { pixelsOf } from "./picture.js";
import { atMost } from "./pool.js";

const WIDTH = 240; // pixels of a picture
const AT_ONCE = 2; // maps that are loaded

const answers = ({ result, typed }) => (typed ?? result).predictions ?? [];
const best = (image) => answers(image)[0];
const score = (image) => best(image)?.score ?? 0;
const lead = (image) => score(image) - (answers(image)[1]?.score ?? 0);
const familiarity = ({ result }) => result.familiarity ?? 1;
const ORDERS = {
  added: () => 0,
  score: (a, b) => score(b) - score(a),
  doubt: (a, b) => lead(a) - lead(b),
  familiarity: (a, b) => familiarity(a) - familiarity(b),
  name: (a, b) => a.name.localeCompare(b.name, "en", { numeric: true }),
  other: (a, b) => (b.apart ?? 0) - (a.apart ?? 0), // see versus.js
};

/** `least`: familiarity below it is said. Gives `step(step)`, which chooses the image that is so many after the chosen one. */
export function showFolder(state, classes, least) {
  const form = byId("sieve");
  const { sort, only, maps } = form.elements;
  const cells = new Map(); // by id
  const drawing = atMost(AT_ONCE);
  const eye = new IntersectionObserver(see, { rootMargin: "200px" });
  let style = ""; // of the maps

  const nameOf = ({ typed }, { label, index }) => (typed ? label : classes.name(index));
  const named = (image) => best(image) && nameOf(image, best(image));

  /** Those on show, in their order. */
  function shown() {
    const wanted = (image) => only.value === "" || named(image) === only.value;
    return images().filter(wanted).sort(ORDERS[sort.value]);
  }

  function show() {
    const all = images();
    const { values } = state;
    document.body.classList.toggle("several", all.length > 1);
    byId("tab-all").textContent = `All ${all.length}`;
    if (values.tab !== "all") return;
    if (!all.length) return state.replace({ tab: "answer" }); // of a link: the images were those of another tab
    const coming = document.querySelectorAll("#queue :is(.waiting, .working)").length;
    offer(all);
    const wanted = ["method", "layer", "head", ...STYLE].map((name) => values[name]).join() + maps.checked;
    if (wanted !== style) {
      eye.disconnect();
      cells.clear();
    }
    style = wanted;
    const chosen = shown();
    byId("grid").replaceChildren(...chosen.map(cellOf));
    byId("counted").textContent = [...new Set([chosen.length, all.length + coming])].join(" of ") + " images";
  }

  /** The labels of the images, the most frequent first. */
  function offer(all) {
    const groups = Map.groupBy(all.filter(best), named);
    const frequent = [...groups].sort((one, other) => other[1].length - one[1].length);
    const labels = frequent.map(([name, { length }]) => [name, `${name} (${length})`]);
    const before = only.value;
    sort.querySelector("[value=familiarity]").hidden = all.every(({ result }) => result.familiarity === undefined);
    only.replaceChildren(...options([["", "all labels"], ...labels]));
    only.value = groups.has(before) ? before : ""; // other labels may have been typed
  }

  function cellOf(image) {
    const { id, said, typed } = image;
    const now = [said, named(image), typed?.prompt, score(image)].join();
    let cell = cells.get(id);
    if (cell?.dataset.now !== now) {
      const open = () => state.set({ ...changesToImage(id, state.values), tab: "answer" });
      cell = imageButton({ source: image.source, onclick: open }, ...lines(image).filter(Boolean));
      Object.assign(cell.dataset, { id, now });
      cells.set(id, cell);
      if (maps.checked) eye.observe(cell);
    }
    cell.firstChild.ariaCurrent = String(id === state.values.id);
    return cell;
  }

  function lines(image) {
    const answer = best(image);
    return [
      answer && [element("b", {}, breakable(named(image))), ` ${percent(answer.score)}`],
      element("small", {}, image.name),
      familiarity(image) < least && element("small", { class: "strange" }, "unfamiliar"),
      image.said && element("small", { class: "other" }, image.said),
    ];
  }

  /** Draw the maps of cells that are seen, those that were seen first before the others. */
  function see(entries) {
    for (const { target, isIntersecting } of entries) {
      target.seen = isIntersecting;
      if (isIntersecting) drawing(async () => target.seen && target.isConnected && (await draw(target)));
    }
  }

  async function draw(cell) {
    const { id } = cell.dataset;
    eye.unobserve(cell);
    cell.seen = false; // it is drawn once
    const { typed } = imageOf(id);
    const [label, prompt] = typed ? [typed.predictions[0].label, typed.prompt] : ["", ""];
    const values = { ...state.values, id, label, prompt, against: "", threshold: "" };
    if (METHODS[values.method].passes) values.method = "evidence"; // it would take seconds for each
    try {
      const numbers = await patient(() => json(mapAddress(values, "json")));
      const picture = await pixelsOf(imageOf(id).file, WIDTH);
      cell.querySelector("img").replaceWith(mapCanvas(scaled(numbers, values), picture, null, values));
    } catch {} // the image alone stays
  }

  function download() {
    const quoted = (value) => (/[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
    const all = shown();
    const ranks = [...Array(Math.max(0, ...all.map((image) => answers(image).length))).keys()];
    const head = ranks.flatMap((rank) => ["label", "index", "score"].map((name) => (rank ? `${name}_${rank + 1}` : name)));
    const row = (image) => {
      const cells = answers(image).flatMap((one) => [quoted(nameOf(image, one)), one.index, one.score]);
      return [quoted(image.name), image.result.familiarity ?? "", ...cells].join(",");
    };
    const table = [["image", "familiarity", ...head].join(","), ...all.map(row), ""].join("\r\n");
    element("a", { href: URL.createObjectURL(new Blob([table], { type: "text/csv" })), download: "images.csv" }).click();
  }

  form.addEventListener("input", show);
  byId("take-csv").addEventListener("click", download);
  state.follow(show);
  state.follow(({ tab, id }) => tab === "all" && cells.get(id)?.scrollIntoView({ block: "nearest" }), ["tab"]);

  return (step) => {
    const all = shown();
    const next = all[all.findIndex(({ id }) => id === state.values.id) + step];
    if (next) state.set(changesToImage(next.id, state.values));
  };
}
