"""Triton Inference Server as PyTriton carries it, with its dynamic batcher (PyTriton guide, binding_configuration)."""

import json
import os
import sysconfig
from typing import Any

import numpy as np
from pytriton.decorators import batch
from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig

from lab.benchmarks.servers.vit import Classifier, decode, number


def make_infer() -> Any:
    classify = Classifier()

    @batch
    def infer(images: np.ndarray) -> dict[str, np.ndarray]:
        predictions = classify([decode(image) for image in images[:, 0]])
        return {"predictions": np.array([[json.dumps(p).encode()] for p in predictions], dtype=object)}

    return infer


if __name__ == "__main__":
    # As its guide asks for: Triton's own Python has to be the one that the standard library here belongs to.
    os.environ["LD_LIBRARY_PATH"] = sysconfig.get_config_var("LIBDIR")
    config = TritonConfig(http_address="127.0.0.1", http_port=number("PORT"), allow_grpc=False, allow_metrics=False)
    with Triton(config=config) as triton:
        triton.bind(
            model_name="vit",
            infer_func=[make_infer() for _ in range(number("INSTANCES"))],
            inputs=[Tensor(name="images", dtype=bytes, shape=(1,))],
            outputs=[Tensor(name="predictions", dtype=bytes, shape=(1,))],
            config=ModelConfig(max_batch_size=number("BATCH"), batcher=DynamicBatcher()),
        )
        triton.serve()
