"""Whether the GPU computes what the CPU computes, for its own images, and on itself alone."""

import numpy as np

from app.bundle import Bundle
from app.inference.cuda.engine import CudaEngine
from app.inference.engine import Engine, Outputs
from app.inference.known_answer import BY_CLASS, KnownImage
from app.inference.model import Model
from lab.benchmarks.bundle_engine import open_engine
from lab.benchmarks.record import Row, Rows
from lab.gpu.bundles import Place, Tables
from lab.gpu.card import used_mib

MAX_BATCH = 64
COMPARED = 8
TOLERANCE = {"fp32": 1e-3, "fp16": 3e-2}  # of the largest number; the CPU has other kernels
CHANGING = ((0, 3), (3, 16), (19, 4), (2, 8), (0, 3), (5, 1), (7, 13), (0, 16), (0, 3))  # first image, and how many


def measure(place: Place) -> Tables:
    tables: Tables = {"engines": [], "differences from the CPU": []}
    for name, bundle in place.bundles().items():
        bundle.check_files()
        tolerance = TOLERANCE[bundle.manifest.precision]
        before = used_mib()
        model, engine = open_on_gpu(bundle, MAX_BATCH)
        model.warm_up()
        images = pictures(bundle, MAX_BATCH)
        cpu = open_engine(bundle.folder, "onnxruntime")
        tables["differences from the CPU"] += parity(name, engine, cpu, images[:COMPARED], tolerance)
        check_batches(engine, images, tolerance)
        tables["engines"].append({
            "bundle": name,
            "largest batch": model.best_batch("explain"),
            "memory, MiB": round(used_mib() - before),
            "of the tolerance of the known answer": round(max(model.known.largest.values()), 3),
        })  # fmt: skip
        del model, engine
    return tables


def open_on_gpu(bundle: Bundle, max_batch: int) -> tuple[Model, CudaEngine]:
    """Not yet warm."""
    manifest = bundle.manifest
    size = manifest.image.size
    engine = CudaEngine(
        folder=bundle.folder,
        layout=manifest.graphs,
        precision=manifest.precision,
        max_batch=max_batch,
    )
    return Model(engine=engine, known=KnownImage(manifest.known_answer, size)), engine


def pictures(bundle: Bundle, count: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (count, *bundle.manifest.image.size, 3), dtype=np.uint8)


def parity(name: str, engine: Engine, cpu: Engine, images: np.ndarray, tolerance: float) -> Rows:
    """Largest difference of each output, relative to its largest number. Raises AssertionError beyond the tolerance."""
    found, expected = explained(engine, images), explained(cpu, images)
    row: Row = {"bundle": name}
    if "classes" in found:
        # the order of nearly tied ones may change, and with it the outputs that have a row per class
        same = (found["classes"] == expected["classes"]).all(1)
        row["share of images with the same classes"] = round(float(same.mean()), 3)
        for output in BY_CLASS:
            found[output], expected[output] = found[output][same], expected[output][same]
    for output in found.keys() - {"classes"}:
        row[output] = apart = difference(found[output], expected[output])
        assert apart <= tolerance, (name, output, apart)
    if "logits" in found:
        same = found["logits"].argmax(-1) == expected["logits"].argmax(-1)
        row["share of images with the same top class"] = round(float(same.mean()), 3)
    return [row]


def explained(engine: Engine, images: np.ndarray) -> Outputs:
    outputs = dict(engine.run("explain", images))
    for name, rows in engine.run("classify", images).items():
        outputs[f"lean {name}"] = rows
    return outputs


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    found, expected = found.astype(np.float64), expected.astype(np.float64)
    if not found.size:
        return 0.0
    return float(f"{np.abs(found - expected).max() / np.abs(expected).max():.1e}")


def check_batches(engine: Engine, images: np.ndarray, tolerance: float) -> None:
    """One size, another, the first again: each image has the answer that it has alone, in a padded batch too."""
    for graph in engine.layout:
        alone = [engine.run(graph, [image])["embedding"][0] for image in images[:24]]
        for start, count in CHANGING:
            found = engine.run(graph, list(images[start : start + count]))["embedding"]
            assert found.shape[0] == count
            assert difference(found, np.stack(alone[start : start + count])) <= tolerance, (graph, start, count)
