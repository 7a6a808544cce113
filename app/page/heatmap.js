// The map on its image, drawn from its numbers, what stands under it, and the numbers under the pointer.

import { idNow, imageOf, json } from "./api.js";
import { showColorbar } from "./colormaps.js";
import { drawMap } from "./draw.js";
import { byId, show } from "./element.js";
import { DEBOUNCE_MS, Latest } from "./latest.js";
import { NUMBERS, STYLE, isOnWall, mapAddress, scaled } from "./maps.js";
import { METHODS, isSigned } from "./methods.js";
import { percent, significant } from "./numbers.js";
import { frame, patchAt } from "./patches.js";
import { pictureOf, pixelsOf } from "./picture.js";
import { beyond, cropped, sentence } from "./sentence.js";
import { around, bounded, place, ratioOf, wholeOf } from "./view.js";

const POINT = `${matchMedia("(hover: none)").matches ? "Tap" : "Point at"} a patch to read its number.`;
const GONE =
  "The server no longer has the maps of this image. It keeps an image for a limited time, 15 minutes unless it is set " +
  "otherwise. Add the file again to see them.";

/** `stock`: where all maps of an image are loaded to, once its first map is shown. Reports `map` when another one is shown,
 * or none. Gives `preview(file)`, and the `numbers` and `pixels` of the map, once they are there.
 */
export function showMap(state, classes, stock) {
  const [stage, pane, map, seen, original, wipe, mark] = ["stage", "map-pane", "map", "seen", "original", "wipe", "patch"].map(byId);
  const drawing = new Latest();
  const drawn = { preview };
  let image = {}; // that is shown: its `id`, its `picture` and where the network looked
  let previewed;

  /** Give the stage the shape of an image before its map is loaded, so that nothing moves when it appears. */
  function reserve({ width, height } = {}) {
    if (width) byId("answer").style.setProperty("--ratio", bounded(width / height));
  }

  /** Let the panes show a part of an image. */
  function crop(size, part) {
    stage.style.setProperty("--shown", ratioOf(part));
    for (const node of [map, original]) place(node, wholeOf(size), part);
  }

  /** Show a file that is on its way to the model. */
  async function preview(file) {
    previewed = file;
    stage.ariaBusy = "true";
    const pixels = await pixelsOf(file).catch(() => undefined);
    if (!pixels || previewed !== file) return;
    const size = [pixels.width, pixels.height];
    drawing.cancel();
    reserve(pixels);
    crop(size, wholeOf(size));
    say("");
    show(map, pixels);
  }

  function draw({ fresh, waitMs = 0 }) {
    const { values } = state;
    if (values.id) previewed = undefined;
    const ready = values.id && image.id === values.id && (fresh ? stock.map(values, image) : drawn.numbers);
    drawing.cancel(); // it is of other controls, or of an image that was left
    if (ready) present(ready, values);
    else if (values.id) load(values, waitMs, METHODS[values.method].passes ?? [undefined]);
  }

  /** `passes`: of a map that takes any, for each of its pictures; the server goes on from those of the one before. */
  function load(values, waitMs, [passes, ...more]) {
    stage.ariaBusy = "true";
    drawn.numbers = undefined; // the old numbers belong to other controls
    link(values);
    drawing.run({
      waitMs,
      load: (signal) => Promise.all([json(mapAddress(values, "json", undefined, passes), { signal }), pictureOf(values.id)]),
      show: ([numbers, picture]) => {
        image = { id: values.id, picture, image: numbers.image, crop_box: numbers.crop_box };
        present(numbers, values);
        if (more.length) load(values, 0, more);
        else stock.load(values.id).catch(() => {}); // for the next map
      },
      busy: say,
      fail,
    });
  }

  /** Where the map is downloaded: the PNG as it is shown, with a colour bar. */
  function link(shown, numbers) {
    const values = { ...shown, id: idNow(shown.id) };
    for (const format of ["png", "json", "npy"]) {
      const href = mapAddress(values, format, numbers) + (format === "png" ? "&colorbar=true" : "");
      Object.assign(byId(`take-${format}`), { href, download: `${values.method}-${values.id.slice(0, 6)}.${format}` });
    }
  }

  function present(numbers, values) {
    const toDraw = scaled(numbers, values);
    const pixels = drawMap(toDraw, image.picture, values);
    const part = around(numbers);
    Object.assign(drawn, { numbers, pixels });
    link(values, numbers);
    show(map, pixels);
    reserve(pixels);
    crop(numbers.image, part);
    place(seen, numbers.crop_box, part);
    showOriginal(values);
    const said = sentence(classes.named(toDraw, values), values.colormap);
    caption(toDraw, values);
    map.ariaLabel = `Map on the image. ${said}`;
    for (const node of document.querySelectorAll(".said")) node.textContent = said;
    for (const near of document.querySelectorAll(".near")) {
      near.hidden = !isOnWall(values);
      show(near.firstElementChild, pixels);
      uncover(near);
    }
    say("");
    document.body.classList.remove("gone");
    stage.ariaBusy = "false";
    leave();
    state.say("map");
  }

  function fail(problem) {
    const gone = problem.status === 404;
    stage.ariaBusy = "false";
    say(gone ? GONE : problem.message);
    byId("retry").hidden = !problem.temporary;
    document.body.classList.toggle("gone", gone);
    state.replace({ tab: "answer" }); // where the reason stands
    state.say("map");
  }

  /** A sentence in place of the map, or the map. */
  function say(sentence) {
    byId("about-map").hidden = pane.hidden = sentence !== "";
    byId("trouble").textContent = sentence;
    byId("trouble-box").hidden = sentence === "";
    byId("retry").hidden = true;
  }

  /** Beside the map, or over the left of it up to the handle; darkened outside the part that the network sees. */
  function showOriginal({ beside, wipe: share, ...style }) {
    const apart = beside === "true";
    const shown = apart || Number(share) > 0;
    byId("original-pane").hidden = !shown;
    stage.classList.toggle("beside", apart);
    stage.style.setProperty("--wipe", share);
    wipe.value = share;
    wipe.ariaValueText = `${Math.round(100 * share)} % original`;
    if (!shown || !drawn.numbers || image.drawn) return;
    show(original, drawMap(drawn.numbers, image.picture, { ...style, overlay: "true", fade: "true", alpha: 0, threshold: "" }));
    image.drawn = true;
  }

  function point(event) {
    if (!drawn.numbers) return;
    const patch = patchAt(seen, drawn.numbers.grid, event);
    if (!patch) return leave();
    frame(mark, drawn.numbers.grid, patch);
    mark.hidden = false;
    byId("readout").textContent = describe(drawn.numbers, patch);
  }

  function leave() {
    mark.hidden = true;
    byId("readout").textContent = POINT;
  }

  state.follow((values, changed) => {
    const now = changed.has("id") || changed.has("end");
    if (now) reserve(imageOf(values.id)?.result.image);
    draw({ fresh: now || NUMBERS.some((name) => changed.has(name)), waitMs: now ? 0 : DEBOUNCE_MS });
  }, [...NUMBERS, ...STYLE, "end"]);
  state.follow(showOriginal);
  byId("retry").addEventListener("click", () => draw({ fresh: true }));
  wipe.addEventListener("input", () => state.set({ wipe: wipe.value }));
  for (const event of ["pointermove", "pointerdown"]) pane.addEventListener(event, point);
  pane.addEventListener("pointerleave", ({ pointerType }) => pointerType === "mouse" && leave()); // a touch leaves as soon as it ends
  return drawn;
}

/** The colours of a map, and numbers for who asks. */
function caption(numbers, { colormap }) {
  const { grid, values, limits, method, min, max, sum } = numbers;
  const [low, high, all] = [min, max, sum].map((value) => significant(value, { plus: isSigned(method) }));
  const outside = values.filter((value) => value < limits[0] || value > limits[1]);
  showColorbar(byId("ramp"), { limits, min, max, colormap });
  byId("range").textContent = `${grid[0]} × ${grid[1]} patches, ${low} to ${high}, sum\u00a0${all}.`;
  byId("beyond").textContent = beyond(outside.length, values.length);
  byId("cropped").textContent = cropped(numbers);
}

/** The number of a patch. */
function describe({ values, grid, method }, [row, column]) {
  const signed = isSigned(method);
  const value = values[row * grid[1] + column];
  const total = values.reduce((sum, v) => sum + Math.abs(v), 0);
  const share = total ? Math.abs(value) / total : 0;
  const of = signed ? "of the sum of all sizes" : "of the mass on patches";
  return `Row ${row}, column ${column}: ${significant(value, { plus: signed })}, ${percent(share)} ${of}`;
}

/** Scroll until a map that stands over the cells, as on a phone, shows the chosen one. */
function uncover(near) {
  const cell = near.parentElement.querySelector("[aria-pressed=true], .chosen")?.getBoundingClientRect();
  const { right, top } = near.getBoundingClientRect();
  if (cell && cell.top < innerHeight && right > cell.left && cell.bottom > top) scrollBy(0, cell.bottom - top + 8);
}
