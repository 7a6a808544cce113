"""What today's arrangements of a ViT cost: the output `embedding`, rotary positions, an attention pool, a cosine head.

Each is the lean graph of ViT-S/16 with random weights, and one image is classified on one core. CPU time is taken in
turn, so the ratios hold on a machine that others use too.
"""

import statistics
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch

from export.graphs import ClassifyGraph
from export.trace import trace
from model.config import RopeConfig, ViTConfig
from model.variants import variant
from model.vit import VisionTransformer
from tests.benchmarks.precision import processor_times
from tests.benchmarks.random_model import random_checkpoint

DINOV3 = RopeConfig(kind="centered", temperature=100.0, pairs="halves")
FIRST = "labels and embedding"
ARRANGEMENTS: dict[str, ViTConfig] = {
    FIRST: variant("S/16"),
    "rotary positions (DINOv3) in place of learned ones": variant("S/16", positions="none", rope=DINOV3),
    "attention pool (SigLIP)": variant("S/16", class_token=False, pool="map"),
    "cosine head": variant("S/16", head="cosine", head_bias=False),
}


def session(path: Path) -> onnxruntime.InferenceSession:
    """On one core: its CPU time is disturbed least by other processes."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def measure() -> list[dict[str, str | float]]:
    graphs = {name: lean(config) for name, config in ARRANGEMENTS.items()}
    alone = onnx.ModelProto()
    alone.CopyFrom(graphs[FIRST])
    del alone.graph.output[1:]
    graphs["labels alone"] = alone
    image = np.random.default_rng(0).integers(0, 256, (1, 224, 224, 3), dtype=np.uint8)
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "graph.onnx"
        runs = {}
        for name, graph in graphs.items():
            onnx.save(graph, path)
            runs[name] = partial(session(path).run, None, {"images": image})
    times = {name: statistics.median(of_runs) for name, of_runs in processor_times(runs).items()}
    return [
        {"ViT-S/16": name, "CPU time, ms": round(1000 * seconds, 1), "ratio": round(seconds / times[FIRST], 3)}
        for name, seconds in times.items()
    ]


def lean(config: ViTConfig) -> onnx.ModelProto:
    torch.manual_seed(0)
    preprocessing = random_checkpoint("mu/16").preprocessing
    return trace(ClassifyGraph(VisionTransformer(config).eval(), preprocessing, precision="fp32"))
