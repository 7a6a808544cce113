// Files from a drop, the clipboard or the file dialog. Each is sent to the model and shown with its result.

import { pathFor, send } from "./api.js";
import { acceptDrops } from "./drop.js";
import { breakable, byId, element, imageButton } from "./element.js";
import { remindOfKey } from "./key.js";
import { patient } from "./latest.js";
import { changesToImage } from "./maps.js";
import { percent } from "./numbers.js";
import { atMost } from "./pool.js";
import { refusals } from "./refusals.js";
import { say } from "./toast.js";

const AT_ONCE = 4; // requests; the server puts them in one batch
const MANY = 9; // files of a drop, which are shown all at once
const MARGIN = 40; // pixels of the strip beside the chosen image
const NO_FILE = "This is an address or text, and the page takes image files. Save the image, then add its file.";

/** `page`: a promise of its `state`, `classes`, `map` and `tabs`, until which files wait. Reports `added` when an image has
 * a result, and `end` if none of the files just added can be used. Gives `add(files)`.
 */
export function listenToFiles(page) {
  const [list, input] = ["queue", "file"].map(byId);
  const { classList } = document.body;
  const sending = atMost(AT_ONCE);
  const addRefusal = refusals(byId("refusals"));
  let fresh = []; // the images added last that are not refused, until the first of them has a result
  let many = false; // they were added at once
  let count = 0; // of all that were added

  function add(files) {
    if (!files.length) return;
    const [first] = files;
    remindOfKey();
    page.then(({ map }) => {
      classList.remove("empty");
      classList.add("waiting");
      map.preview(first);
    });
    fresh = [];
    many = files.length >= MANY;
    for (const file of files) enqueue(imageOf(file));
  }

  /** Files of a drop or paste, or the answer to one without files. */
  function take(files) {
    say(files.length ? "" : NO_FILE);
    add(files);
  }

  /** An image and its place in the list. */
  function imageOf(file) {
    const image = { file, name: file.name, source: URL.createObjectURL(file), place: count++ };
    const node = imageButton({ source: image.source, disabled: true, title: file.name, onclick: () => choose(image) });
    const picture = node.querySelector("img");
    picture.addEventListener("error", () => picture.classList.add("unseen")); // a format that this browser cannot draw
    node.place = image.place;
    return Object.assign(image, { node, button: node.firstChild, status: element("span", { class: "status" }, "waiting") });
  }

  async function enqueue(image) {
    fresh.push(image);
    image.node.className = "waiting";
    image.button.append(image.status);
    list.append(image.node);
    const { state, classes } = await page;
    await sending(() => ask(image, classes));
    if (image.id) state.say("added");
    settle(image, state);
  }

  async function ask(image, classes) {
    const { node, status, button } = image;
    image.path = pathFor(classes.labels);
    node.className = "working";
    status.replaceChildren("…");
    try {
      await patient(() => send(image));
    } catch (problem) {
      return refuse(image, problem);
    }
    const { predictions: [best] = [] } = image.result;
    node.className = "named";
    const label = best && [element("b", {}, breakable(classes.name(best.index))), percent(best.score)];
    status.replaceChildren(...(label ?? []), element("small", {}, image.name));
    if (!image.id) status.append(". The server could not keep its maps.");
    else node.dataset.id = image.id;
    button.disabled = !image.id;
  }

  function refuse(image, problem) {
    const { node, status } = image;
    const retry = () => {
      more.remove();
      enqueue(image);
    };
    const all = () => [...node.parentElement.children].forEach((refused) => refused.retry?.()); // one reason stopped them
    const again = element("button", { type: "button", class: "link", onclick: all }, "Try again");
    const more = element("span", { class: "more" }, problem.temporary ? again : null);
    node.retry = problem.temporary ? retry : undefined;
    node.className = "refused";
    status.replaceChildren(element("b", {}, image.name), ` ${problem.message}`);
    node.append(status, more); // the sentence must not be inside the button
    addRefusal(node);
  }

  /** Choose the first of the files just added as soon as it has a result, and all before it are refused. */
  function settle(image, state) {
    if (!fresh.includes(image)) return;
    if (!image.id) fresh.splice(fresh.indexOf(image), 1);
    const [first] = fresh;
    if (first && !first.id) return;
    fresh = [];
    if (first) choose(first, many && { tab: "all" });
    else state.say("end");
  }

  async function choose({ id }, more) {
    const { state, tabs } = await page;
    const first = !state.values.id && { tab: tabs[0] };
    state.set({ ...changesToImage(id, state.values), ...first, ...more });
  }

  /** Outline the chosen image, and scroll to it along the strip. */
  function mark({ id }) {
    classList.toggle("empty", !id);
    classList.remove("waiting");
    for (const node of list.children) node.classList.toggle("chosen", node.dataset.id === id && id !== "");
    list.scrollLeft = (list.querySelector(".chosen")?.offsetLeft ?? 0) - MARGIN;
  }

  input.addEventListener("change", () => {
    add(input.files);
    input.value = "";
  });
  addEventListener("paste", ({ clipboardData, target }) => {
    if (!target.closest("input, textarea")) take(clipboardData.files);
  });
  byId("again").addEventListener("click", () => input.click());
  acceptDrops(take);
  page.then(({ state }) => state.follow(mark, ["id", "end"]));
  return add;
}
