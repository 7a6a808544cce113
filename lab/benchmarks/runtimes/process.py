"""`python -m lab.benchmarks.runtimes.process RUNTIME ARGUMENT... EXPECTED`: a runtime with a model, to be timed.

The process reads a line with a batch size and prints the milliseconds of one run. A runtime is a function here, and its
arguments are the function's. Each imports only its own library, so that no other is in the process.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from app.bundle import Graph
from app.machine import allowed_cores

SIZE = 224
LEAST_COSINE = 0.99  # between the logits and those of PyTorch in float32: it is the same network

Run = Callable[[], np.ndarray]  # gives logits (batch, classes)
Prepare = Callable[[int], Run]  # for a batch size, the function that is timed


def pixels(batch: int) -> np.ndarray:
    """The same images in every process, uint8 (batch, SIZE, SIZE, 3)."""
    return np.random.default_rng(0).integers(0, 256, (batch, SIZE, SIZE, 3), dtype=np.uint8)


def normalised(batch: int) -> np.ndarray:
    """Those images as a network takes them, float32 (batch, 3, SIZE, SIZE)."""
    return ((pixels(batch).astype(np.float32) / 255 - 0.5) / 0.5).transpose(0, 3, 1, 2).copy()


def onnx_runtime(graph: str) -> Prepare:
    from lab.benchmarks.servers.vit import opened

    session = opened(Path(graph), allowed_cores(), spinning=True)
    (images,) = session.get_inputs()

    def prepare(batch: int) -> Run:
        feed = {images.name: normalised(batch)}
        return lambda: session.run(None, feed)[0]  # logits are the first output

    return prepare


def open_vino(model: str, precision: str) -> Prepare:
    """`precision`: f32 or bf16. Compiled for each batch size, as OpenVINO's guide to static shapes recommends."""
    import openvino

    core = openvino.Core()
    threads = str(allowed_cores())
    options = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": precision, "INFERENCE_NUM_THREADS": threads}

    def prepare(batch: int) -> Run:
        network = core.read_model(model)
        network.reshape([batch, 3, SIZE, SIZE])
        request = core.compile_model(network, "CPU", options).create_infer_request()
        images = openvino.Tensor(normalised(batch), shared_memory=True)

        def run() -> np.ndarray:
            request.infer([images])
            logits: np.ndarray = request.get_output_tensor(0).data
            return logits

        return run

    return prepare


def ours(bundle: str, engine: str, graph: Graph) -> Prepare:
    """As it is served."""
    from lab.benchmarks.bundle_engine import open_engine

    opened = open_engine(Path(bundle), engine)

    def prepare(batch: int) -> Run:
        images = pixels(batch)
        return lambda: opened.run(graph, images)["logits"]

    return prepare


def pytorch(variant: str, dtype: str, mode: str) -> Prepare:
    """`dtype`: float32 or bfloat16; `mode`: eager or compile."""
    import torch

    from lab.benchmarks.random_model import random_checkpoint

    torch.set_num_threads(allowed_cores())
    model = random_checkpoint(variant).model.to(getattr(torch, dtype))
    forward = torch.compile(model) if mode == "compile" else model

    def prepare(batch: int) -> Run:
        images = torch.from_numpy(normalised(batch)).to(getattr(torch, dtype))
        return torch.inference_mode()(lambda: forward(images).float().numpy())

    return prepare


RUNTIMES: dict[str, Callable[..., Prepare]] = {each.__name__: each for each in (onnx_runtime, open_vino, ours, pytorch)}


def answer(prepare: Prepare, expected: np.ndarray) -> None:
    """Until the input ends. Raises RuntimeError where logits differ from those expected."""
    runs: dict[int, Run] = {}
    for line in sys.stdin:
        batch = int(line)
        if batch not in runs:
            runs[batch] = prepare(batch)
            check(runs[batch](), expected)
        start = time.perf_counter()
        runs[batch]()
        print(1000 * (time.perf_counter() - start), flush=True)


def check(logits: np.ndarray, expected: np.ndarray) -> None:
    found, expected = logits[0].astype(np.float64), expected[0]
    cosine = found @ expected / np.linalg.norm(found) / np.linalg.norm(expected)
    if not cosine >= LEAST_COSINE:
        raise RuntimeError(f"this is another network: its logits have a cosine of {cosine:.3f} with those expected")


if __name__ == "__main__":
    runtime, *arguments, file = sys.argv[1:]
    answer(RUNTIMES[runtime](*arguments), np.load(file))
