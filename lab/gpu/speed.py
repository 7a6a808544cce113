"""How long a run takes at each batch size."""

from functools import partial

from lab.benchmarks.record import Rows
from lab.gpu.bundles import Place, Tables
from lab.gpu.card import milliseconds
from lab.gpu.parity import open_on_gpu, pictures

MAX_BATCH = 256
SECONDS = 0.5  # of each measurement


def measure(place: Place) -> Tables:
    """The recorded run alone, the same node by node, and with all that the engine's thread does for a batch."""
    rows: Rows = []
    for name, bundle in place.bundles().items():
        model, engine = open_on_gpu(bundle, MAX_BATCH)
        model.warm_up()
        images = pictures(bundle, MAX_BATCH)
        for (graph, size), recording in sorted(engine._recordings.items()):
            alone = milliseconds(recording.launch, SECONDS)
            plain = milliseconds(partial(recording.launch, plainly=True), SECONDS / 2)
            whole = milliseconds(partial(engine.run, graph, list(images[:size])), SECONDS)
            rows.append({
                "bundle": name,
                "graph": graph,
                "batch": size,
                "recorded, ms": round(alone, 3),
                "images/s": round(1000 * size / alone),
                "node by node, ms": round(plain, 3),
                "with copies, ms": round(whole, 3),
                "images/s with copies": round(1000 * size / whole),
            })  # fmt: skip
        del model, engine
    return {"runs": rows}
