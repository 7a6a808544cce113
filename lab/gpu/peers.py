"""The same network in PyTorch, compiled and not, in turn with this engine."""

import time
from functools import partial

import torch

from app.bundle import Bundle
from app.inference.cuda.engine import CudaEngine
from lab.benchmarks.random_model import random_checkpoint
from lab.benchmarks.record import Rows
from lab.gpu.bundles import MODELS, Place, Tables
from lab.gpu.card import milliseconds
from lab.gpu.parity import open_on_gpu
from model.vit import VisionTransformer

DEVICE = "cuda"
MODELS_COMPARED = ("b16-fp16", "s16-fp16")
BATCHES = (1, 64, 256)
BUDGET_S = 120.0  # after which nothing more is compiled
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
MODES = {"eager": None, "compiled": "default", "compiled, max-autotune": "max-autotune"}
ROUNDS = 3


def measure(place: Place) -> Tables:
    """PyTorch is given normalised images that are on the GPU already, and gives logits; its attention is
    `scaled_dot_product_attention`. Our recorded lean run has images and outputs on the GPU too.
    """
    torch.backends.cuda.matmul.allow_tf32 = True
    rows: Rows = []
    deadline = time.perf_counter() + BUDGET_S
    for name, bundle in place.bundles(*MODELS_COMPARED).items():
        model, engine = open_on_gpu(bundle, max(BATCHES))
        model.warm_up()
        variant, changes = MODELS[name.removesuffix("-fp16")]
        network = random_checkpoint(variant, **changes).model.to(DEVICE)
        rows += compared(name, bundle, engine, network, deadline)
        del model, engine, network
    return {"lean runs": rows}


def compared(name: str, bundle: Bundle, engine: CudaEngine, model: VisionTransformer, deadline: float) -> Rows:
    size = bundle.manifest.image.size
    times: dict[tuple[int, str], list[float]] = {}
    for mode_name, mode in MODES.items():  # that which compiles longest is the last
        for dtype_name, dtype in DTYPES.items():
            torch.compiler.reset()
            network = model.to(dtype)
            run = torch.compile(network, mode=mode, dynamic=False) if mode else network
            for batch in BATCHES:
                if time.perf_counter() > deadline:
                    break
                images = torch.randn(batch, 3, *size, device=DEVICE, dtype=dtype)
                for _ in range(ROUNDS):
                    of_torch = milliseconds(partial(forward, run, images), 0.3)
                    of_ours = milliseconds(engine._recordings["classify", batch].launch, 0.3)
                    times.setdefault((batch, f"PyTorch {dtype_name}, {mode_name}"), []).append(of_torch)
                    times.setdefault((batch, "ours, fp16"), []).append(of_ours)
    rows: Rows = []
    for (batch, way), of_way in sorted(times.items()):
        ours = sorted(times[batch, "ours, fp16"])
        ms, base = sorted(of_way)[len(of_way) // 2], ours[len(ours) // 2]
        rows.append({
            "bundle": name,
            "batch": batch,
            "way": way,
            "ms": round(ms, 3),
            "images/s": round(1000 * batch / ms),
            "our rate / its rate": round(ms / base, 2),
        })  # fmt: skip
    return rows


@torch.inference_mode()
def forward(run: object, images: torch.Tensor) -> None:
    assert callable(run)
    run(images)
    torch.cuda.synchronize()
