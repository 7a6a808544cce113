// Plays the layers of the map, from the first to the last.

import { byId } from "./element.js";
import { takes } from "./methods.js";

const EACH_MS = 300;

export function playLayers(state, { layers }) {
  const button = byId("play");
  let timer;

  function stop() {
    clearInterval(timer);
    timer = undefined;
    button.ariaLabel = "Play the layers";
    button.textContent = "▶";
  }

  button.addEventListener("click", () => {
    if (timer) return stop();
    let layer = 0;
    const step = () => (layer < layers ? state.set({ layer: String(layer++) }) : stop());
    timer = setInterval(step, EACH_MS);
    button.ariaLabel = "Stop";
    button.textContent = "■";
    step();
  });
  state.follow(({ method }, changed) => {
    if (timer && (changed.has("id") || !takes(method, "layer"))) stop();
  });
  stop();
}
