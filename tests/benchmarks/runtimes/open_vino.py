"""`python -m tests.benchmarks.runtimes.open_vino MODEL f32|bf16 THREADS EXPECTED`.

Or `... quantise GRAPH IMAGES MODEL`.

A model is compiled for each batch size, as OpenVINO's guide to static shapes recommends.
"""

import sys
from pathlib import Path

import numpy as np
import openvino

from tests.benchmarks.runtimes.conversation import SIZE, Run, answer, normalised


def main(model: str, precision: str, threads: str, expected: str) -> None:
    core = openvino.Core()
    options = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": precision,
        "INFERENCE_NUM_THREADS": int(threads),
    }

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

    answer(prepare, Path(expected))


def quantise(graph: str, calibration: str, model: str) -> None:
    """By NNCF, with its settings for transformers. `calibration` is a file of normalised images (N, 3, SIZE, SIZE)."""
    import nncf  # takes seconds

    images = [image[None] for image in np.load(calibration)]
    network = nncf.quantize(
        openvino.Core().read_model(graph),
        nncf.Dataset(images),
        subset_size=len(images),
        model_type=nncf.ModelType.TRANSFORMER,
        preset=nncf.QuantizationPreset.MIXED,
    )
    openvino.save_model(network, model)


if __name__ == "__main__":
    if sys.argv[1] == "quantise":
        quantise(*sys.argv[2:])
    else:
        main(*sys.argv[1:])
