"""What the peers' applications share, written as their users would write it. It runs in each peer's environment.

Threads and batches are the same for all: VIT_BENCH_THREADS for the model, batches of 8, and 10 ms to fill one where
the server waits.
"""

import os
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime as ort
import torch
from PIL import Image

from model.config import variant
from model.vit import VisionTransformer

MAX_BATCH = 8
MAX_WAIT_S = 0.01

Pixels = npt.NDArray[np.float32]  # (3, 224, 224), normalised
Logits = Callable[[Pixels], npt.NDArray[np.float32]]  # (images, 3, 224, 224) to (images, classes)
Prediction = dict[str, str | float]  # label and score


def folder() -> Path:
    """Of the weights, see weights.py."""
    return Path(os.environ["VIT_BENCH_WEIGHTS"])


def port() -> int:
    return int(os.environ["VIT_BENCH_PORT"])


def decode(jpeg: bytes) -> Pixels:
    """Shorter side to 256, bicubic; the middle 224 x 224; mean and standard deviation 0.5."""
    image = Image.open(BytesIO(jpeg)).convert("RGB")
    scale = 256 / min(image.size)
    width, height = (round(side * scale) for side in image.size)
    left, top = (width - 224) // 2, (height - 224) // 2
    image = image.resize((width, height), Image.Resampling.BICUBIC).crop((left, top, left + 224, top + 224))
    values = np.asarray(image, np.float32).transpose(2, 0, 1) / np.float32(255)
    return (values - np.float32(0.5)) / np.float32(0.5)


class Classifier:
    def __init__(self) -> None:
        threads = int(os.environ["VIT_BENCH_THREADS"])
        self._logits = {"torch": _torch, "ONNX Runtime": _onnx}[os.environ["VIT_BENCH_RUNTIME"]](threads)

    def __call__(self, pixels: list[Pixels]) -> list[list[Prediction]]:
        """The five likeliest labels of each image."""
        logits = self._logits(np.stack(pixels))
        exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
        scores = exponentials / exponentials.sum(axis=1, keepdims=True)
        return [
            [{"label": f"class {i}", "score": float(row[i])} for i in np.argsort(row)[: -5 - 1 : -1]] for row in scores
        ]


def _torch(threads: int) -> Logits:
    torch.set_num_threads(threads)
    model = VisionTransformer(variant("S/16")).eval()
    model.load_state_dict(torch.load(folder() / "weights.pt", weights_only=True))

    @torch.inference_mode()
    def logits(images: Pixels) -> npt.NDArray[np.float32]:
        found: npt.NDArray[np.float32] = model(torch.from_numpy(images)).numpy()
        return found

    return logits


def _onnx(threads: int) -> Logits:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(str(folder() / "plain.onnx"), options, providers=["CPUExecutionProvider"])

    def logits(images: Pixels) -> npt.NDArray[np.float32]:
        found: npt.NDArray[np.float32] = session.run(None, {"images": images})[0]
        return found

    return logits
