"""The baseline of this project's graphs: a plain `torch.onnx.export`."""

import warnings
from pathlib import Path

import torch

from model.vit import VisionTransformer


def export_plainly(model: VisionTransformer, path: Path) -> None:
    """`torch.onnx.export` with its defaults: normalised float NCHW in, logits out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model,
            (torch.zeros(2, 3, *model.config.image_size),),
            path,
            input_names=["images"],
            opset_version=18,
            dynamic_shapes={"images": {0: torch.export.Dim("batch", min=1, max=4096)}},
            verbose=False,
        )
