"""Checkpoint to bundle: trace, check, describe, and only then put the folder in its place."""

import tempfile
from functools import partial
from importlib.metadata import version
from pathlib import Path

import onnx
import onnxruntime
from tqdm import tqdm

from app.bundle import (
    CLASSIFY_GRAPH,
    EXPLAIN_GRAPH,
    MANIFEST,
    PICTURE_FORMATS,
    WEIGHTS,
    ImageSpec,
    Manifest,
    Tokens,
    picture_file,
    sha256,
)
from app.engine import OnnxEngine
from app.settings import allowed_cores
from export.distances import distances, reference_distance
from export.filters import filters
from export.graphs import ClassifyGraph, ExplainGraph
from export.image_spec import image_spec
from export.onnx_file import SharedWeights, trace
from export.parity import check_parity
from export.portrait import Portrait
from export.relative_bias import relative_bias
from export.similarity import positions
from model.checkpoints.checkpoint import Checkpoint

GRAPHS: dict[str, type[ClassifyGraph]] = {CLASSIFY_GRAPH: ClassifyGraph, EXPLAIN_GRAPH: ExplainGraph}
PACKAGES = ("torch", "onnx", "onnxscript", "numpy", "pillow")


def write_bundle(checkpoint: Checkpoint, out: Path, *, replace: bool) -> Manifest:
    """Write the bundle at `out`.

    Raises FileExistsError when `out` is there and `replace` is not set, ParityError when the graphs do not give the
    model's numbers. Whatever is raised, nothing is left behind and what was at `out` stays.
    """
    if out.exists() and not replace:
        raise FileExistsError(f"{out} is there already")
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as temporary:
        folder = Path(temporary) / "new"
        folder.mkdir()
        manifest = _fill(folder, checkpoint)
        if out.exists():
            out.rename(Path(temporary) / "old")
        folder.rename(out)
    return manifest


def _fill(folder: Path, checkpoint: Checkpoint) -> Manifest:
    weights = SharedWeights(folder / WEIGHTS)
    for file, graph in tqdm(GRAPHS.items(), desc="tracing", unit="graph"):
        proto = trace(graph(checkpoint.model, checkpoint.preprocessing))
        weights.externalise(proto)
        onnx.save(proto, folder / file)
    spec = image_spec(checkpoint.preprocessing)
    engine = OnnxEngine(folder=folder, image_size=spec.size, device="cpu", threads=allowed_cores())
    config = checkpoint.model.config
    parity = check_parity(checkpoint, spec, engine)
    portraits = _portraits(checkpoint, spec)
    for portrait in portraits:
        portrait.write(folder)
    pictures = [picture_file(portrait.name, kind) for portrait in portraits for kind in PICTURE_FORMATS]
    manifest = Manifest(
        format=1,
        name=checkpoint.name,
        family=checkpoint.family,
        precision="fp32",
        image=spec,
        tokens=Tokens(patch=config.patch_size, grid=config.grid, prefix=config.prefix),
        layers=config.depth,
        heads=config.heads,
        pool=config.pool,
        labels=checkpoint.labels,
        score=checkpoint.score,
        parity=parity,
        overrides=checkpoint.overrides,
        figures=checkpoint.figures,
        inspect={portrait.name: portrait.title for portrait in portraits},
        made_with={p: version(p).split("+")[0] for p in PACKAGES} | {"onnxruntime": onnxruntime.__version__},
        files={name: sha256(folder / name) for name in (*GRAPHS, WEIGHTS, *pictures)},
    )
    (folder / MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n")
    return manifest


def _portraits(checkpoint: Checkpoint, spec: ImageSpec) -> list[Portrait]:
    """The pictures that this model has of itself, in the order to show them."""
    model = checkpoint.model
    measure = partial(distances, model, checkpoint.preprocessing)
    distance = reference_distance(measure, spec, patch_size=model.config.patch_size)
    return [portrait for portrait in (filters(model), positions(model), relative_bias(model), distance) if portrait]
