"""Open a graph and run it. Imports no torch, so that its memory is not measured."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime as ort

from app.machine import allowed_cores


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
