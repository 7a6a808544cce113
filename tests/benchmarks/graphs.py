"""The serving graphs against a plain `torch.onnx.export` of the same model, ViT-S/16 with random weights."""

import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime as ort
import torch
from tqdm import tqdm

from app.bundle import CLASSIFY_GRAPH, EXPLAIN_GRAPH
from app.settings import allowed_cores
from export.bundle import write_bundle
from model.vit import VisionTransformer
from tests.benchmarks.random_model import random_checkpoint

VARIANT = "S/16"
BATCHES = (1, 8)
ROUNDS = 25


def measure() -> list[dict[str, str | float]]:
    checkpoint = random_checkpoint(VARIANT)
    with tempfile.TemporaryDirectory() as temporary:
        plain = Path(temporary) / "plain.onnx"
        export_plainly(checkpoint.model, plain)
        bundle = Path(temporary) / "bundle"
        write_bundle(checkpoint, bundle, replace=False)
        sessions = {
            "plain export, logits only": session(plain),
            "lean": session(bundle / CLASSIFY_GRAPH),
            "explaining: every map": session(bundle / EXPLAIN_GRAPH),
        }
        rows = []
        for batch in BATCHES:
            runs = {name: runner(s, batch) for name, s in sessions.items()}
            medians = {name: statistics.median(times) for name, times in interleaved(runs).items()}
            base = medians["plain export, logits only"]
            for name, median in medians.items():
                rows.append({"graph": name, "batch": batch, "ms": round(median, 1), "ratio": round(median / base, 2)})
    return rows


def interleaved(runs: dict[str, Callable[[], None]]) -> dict[str, list[float]]:
    """Milliseconds of each, taken in turn so that a change of the machine's speed meets all of them."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run()
    for _ in tqdm(range(ROUNDS), desc="rounds"):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            times[name].append(1000 * (time.perf_counter() - start))
    return times


def export_plainly(model: VisionTransformer, path: Path) -> None:
    """What `torch.onnx.export` gives without any thought: normalised float NCHW in, logits out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model,
            (torch.zeros(2, 3, *model.config.image_size),),
            path,
            input_names=["images"],
            opset_version=18,
            dynamic_shapes={"images": {0: torch.export.Dim("batch", min=1, max=4096)}},
            verbose=False,
        )


def session(path: Path) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = allowed_cores()
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def runner(s: ort.InferenceSession, batch: int) -> Callable[[], None]:
    (images,) = s.get_inputs()
    shape = (batch, *images.shape[1:])
    dtype = np.uint8 if images.type == "tensor(uint8)" else np.float32
    data = np.random.default_rng(0).integers(0, 256, shape).astype(dtype)

    def run() -> None:
        s.run(None, {"images": data})

    return run
