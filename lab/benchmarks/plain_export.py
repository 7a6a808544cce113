"""The baselines of this project's graphs: a plain `torch.onnx.export`, and what NNCF makes of it."""

import os
import subprocess
import warnings
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch import Tensor, nn

from lab.benchmarks.record import ROOT

NNCF = ROOT / ".venv-bench" / "openvino" / "bin" / "python"  # of the environment that has it
SILENT = {"CI": "true"}  # OpenVINO and NNCF report their use to their makers where this is not set


def export_plainly(model: nn.Module, images: Tensor, path: Path, *, outputs: Sequence[str] = ("logits",)) -> None:
    """`torch.onnx.export` with its defaults, for any number of images; `images` are two, as an example."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model,
            (images,),
            path,
            input_names=["images"],
            output_names=outputs,
            opset_version=18,
            dynamic_shapes={"images": {0: torch.export.Dim("batch", min=1, max=4096)}},
            verbose=False,
        )


def quantise(graph: Path, images: np.ndarray, path: Path) -> None:
    """A plain export in int8, for OpenVINO, calibrated on normalised images (N, 3, height, width)."""
    with TemporaryDirectory() as folder:
        calibration = Path(folder, "images.npy")
        np.save(calibration, images)
        command = [str(NNCF), "-m", "lab.benchmarks.quantise", str(graph), str(calibration), str(path)]
        subprocess.run(command, env=os.environ | SILENT, cwd=ROOT, capture_output=True, check=True)
