"""`python -m lab.benchmarks.quantise GRAPH IMAGES MODEL`: what NNCF makes of a graph."""

import sys

import nncf
import numpy as np
import openvino


def main(graph: str, calibration: str, model: str) -> None:
    """With NNCF's settings for transformers. `calibration` is a file of normalised images (N, 3, height, width)."""
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
    main(*sys.argv[1:])
