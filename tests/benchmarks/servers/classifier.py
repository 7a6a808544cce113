"""The model in the peers' applications: ONNX Runtime for a graph, PyTorch for weights."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.benchmarks.servers.vit import Pixels, Prediction, graph, number, predictions

Logits = Callable[[Pixels], npt.NDArray[np.float32]]  # of a batch; (images, classes)


class Classifier:
    def __init__(self) -> None:
        self._logits = _torch() if graph().suffix == ".pt" else _onnx_runtime()

    def __call__(self, pixels: list[Pixels]) -> list[list[Prediction]]:
        """The five likeliest labels of each image."""
        return predictions(self._logits(np.stack(pixels)))


def _torch() -> Logits:
    import torch  # only where it is used: it takes seconds and memory

    from model.variants import variant
    from model.vit import VisionTransformer

    torch.set_num_threads(number("THREADS"))
    model = VisionTransformer(variant("S/16")).eval()
    model.load_state_dict(torch.load(graph(), weights_only=True))

    @torch.inference_mode()
    def logits(images: Pixels) -> npt.NDArray[np.float32]:
        found: npt.NDArray[np.float32] = model(torch.from_numpy(images)).numpy()
        return found

    return logits


def opened(graph: Path, threads: int, *, spinning: bool) -> Any:
    """A session of ONNX Runtime; `spinning`: its threads wait for work in a loop, which is its default."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", str(int(spinning)))
    return ort.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])


def _onnx_runtime() -> Logits:
    session = opened(graph(), number("THREADS"), spinning=bool(number("SPINNING")))
    first = session.get_outputs()[0].name  # logits; this project's graphs also have embeddings

    def logits(images: Pixels) -> npt.NDArray[np.float32]:
        found: npt.NDArray[np.float32] = session.run([first], {"images": images})[0]
        return found

    return logits
