"""What the peers' applications share, written as their users would write it. It runs in each peer's environment, with
ONNX Runtime for a graph and PyTorch for weights.

contenders.py says by variables on which PORT it listens, how many INSTANCES of the model there are, how many THREADS
each has, and how many images a BATCH may have. A server that waits for a batch waits 10 ms.
"""

import os
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

MAX_WAIT_S = 0.01

Pixels = npt.NDArray[Any]  # (3, 224, 224) float32, normalised; for this project's graphs (224, 224, 3) uint8
Prediction = dict[str, str | float]  # label and score
Logits = Callable[[Pixels], npt.NDArray[np.float32]]  # of a batch; (images, classes)


def number(variable: str) -> int:
    return int(os.environ[f"VIT_BENCH_{variable}"])


def graph() -> Path:
    """The file of the model, in the folder that weights.py wrote."""
    return Path(os.environ["VIT_BENCH_WEIGHTS"], os.environ["VIT_BENCH_GRAPH"])


def decode(jpeg: bytes) -> Pixels:
    """As the graph takes it."""
    return crop(jpeg) if graph().name == "classify.onnx" else normalise(crop(jpeg))


def crop(jpeg: bytes) -> npt.NDArray[np.uint8]:
    """Shorter side to 256, bicubic; the middle 224 x 224: (224, 224, 3)."""
    image = Image.open(BytesIO(jpeg)).convert("RGB")
    scale = 256 / min(image.size)
    width, height = (round(side * scale) for side in image.size)
    left, top = (width - 224) // 2, (height - 224) // 2
    image = image.resize((width, height), Image.Resampling.BICUBIC).crop((left, top, left + 224, top + 224))
    return np.asarray(image)


def normalise(pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """Mean and standard deviation 0.5: (3, 224, 224)."""
    values = pixels.astype(np.float32).transpose(2, 0, 1) / np.float32(255)
    return (values - np.float32(0.5)) / np.float32(0.5)


def predictions(logits: npt.NDArray[np.float32]) -> list[list[Prediction]]:
    """The five likeliest labels of each image; `logits` is (images, classes)."""
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    scores = exponentials / exponentials.sum(axis=1, keepdims=True)
    return [[{"label": f"class {i}", "score": float(row[i])} for i in np.argsort(row)[: -5 - 1 : -1]] for row in scores]


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
    return torch.inference_mode()(lambda images: model(torch.from_numpy(images)).numpy())


def _onnx_runtime() -> Logits:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = number("THREADS")
    options.add_session_config_entry("session.intra_op.allow_spinning", str(number("SPINNING")))
    session = ort.InferenceSession(str(graph()), options, providers=["CPUExecutionProvider"])
    first = session.get_outputs()[0].name  # logits; this project's graphs also have embeddings
    return lambda images: session.run([first], {"images": images})[0]
