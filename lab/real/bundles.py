"""Bundles of the trained network, and what they say."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.bundle import Graph, Precision
from app.inference.engine import Engine, Outputs
from export.bundle import write_bundle
from export.folder import decoded, read_folder
from export.image_spec import image_spec
from lab.benchmarks.bundle_engine import open_engine
from lab.real.data import Data
from model.checkpoints import load_checkpoint

BATCH = 8


@contextmanager
def engine_of(data: Data, precision: Precision, *, photos: bool = False) -> Iterator[Engine]:
    """The engine of a bundle, whose ranges are from the photographs or from drawn images."""
    checkpoint = load_checkpoint(data.network)
    images = read_folder(data.photos, checkpoint) if photos else None
    with tempfile.TemporaryDirectory() as folder:
        bundle = Path(folder, "bundle")
        write_bundle(checkpoint, bundle, replace=False, precision=precision, images=images)
        yield open_engine(bundle)


def pixels(data: Data, files: Sequence[Path]) -> npt.NDArray[np.uint8]:
    """As the service prepares them, (n, height, width, 3)."""
    spec = image_spec(load_checkpoint(data.network).preprocessing)
    return np.stack([image.pixels for _, image in decoded(files, spec) if not isinstance(image, str)])


def outputs(engine: Engine, graph: Graph, images: npt.NDArray[np.uint8]) -> Outputs:
    """Of all images."""
    runs = [engine.run(graph, images[start : start + BATCH]) for start in range(0, len(images), BATCH)]
    return {name: np.concatenate([run[name] for run in runs]) for name in runs[0]}
