"""Checkpoint to bundle: trace, check, describe, and only then put the folder in its place."""

import tempfile
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
    Manifest,
    Precision,
    Tokens,
    picture_file,
    sha256,
)
from app.inference.cpu import OnnxEngine
from app.machine import allowed_cores
from export.agreement import measure_agreement
from export.distances import reference_distance
from export.filters import filters
from export.graphs import ClassifyGraph, ExplainGraph
from export.image_spec import image_spec
from export.onnx_file import SharedWeights, trace
from export.parity import check_parity
from export.portrait import Portrait
from export.precision import prepared
from export.relative_bias import relative_bias
from export.similarity import positions
from model.checkpoints.checkpoint import Checkpoint
from model.vit import VisionTransformer

PACKAGES = ("torch", "onnx", "onnxscript", "numpy", "pillow")


def write_bundle(checkpoint: Checkpoint, out: Path, *, replace: bool, precision: Precision = "fp32") -> Manifest:
    """Write the bundle at `out`.

    Raises FileExistsError when `out` is there and `replace` is not set, ParityError when the graphs do not give the
    model's numbers, ValueError when its weights cannot be had in `precision`. Whatever is raised, nothing is left
    behind and what was at `out` stays.
    """
    if out.exists() and not replace:
        raise FileExistsError(f"{out} is there already")
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as temporary:
        folder = Path(temporary) / "new"
        folder.mkdir()
        manifest = _fill(folder, checkpoint, precision)
        if out.exists():
            out.rename(Path(temporary) / "old")
        folder.rename(out)
    return manifest


def _fill(folder: Path, checkpoint: Checkpoint, precision: Precision) -> Manifest:
    weights = SharedWeights(folder / WEIGHTS)
    spec, preprocessing = image_spec(checkpoint.preprocessing), checkpoint.preprocessing
    model = prepared(checkpoint, spec, precision)
    explain = ExplainGraph(model, preprocessing, precision=precision, score=checkpoint.score)
    graphs = {CLASSIFY_GRAPH: ClassifyGraph(model, preprocessing, precision=precision), EXPLAIN_GRAPH: explain}
    for file, graph in tqdm(graphs.items(), desc="tracing", unit="graph"):
        proto = trace(graph)
        weights.externalise(proto)
        onnx.save(proto, folder / file)
    engine = OnnxEngine(folder=folder, image_size=spec.size, threads=allowed_cores())
    config = checkpoint.model.config
    parity = check_parity(checkpoint, spec, engine, precision)
    agreement = None if precision == "fp32" else measure_agreement(checkpoint, spec, engine)
    portraits = _portraits(checkpoint.model, reference_distance(engine, spec, patch_size=config.patch_size))
    for portrait in portraits:
        portrait.write(folder)
    pictures = [picture_file(portrait.name, kind) for portrait in portraits for kind in PICTURE_FORMATS]
    manifest = Manifest(
        format=1,
        name=checkpoint.name,
        family=checkpoint.family,
        precision=precision,
        image=spec,
        tokens=Tokens(patch=config.patch_size, grid=config.grid, prefix=config.prefix),
        layers=config.depth,
        heads=config.heads,
        pool=config.pool,
        explains=explain.outputs,
        labels=checkpoint.labels,
        score=checkpoint.score,
        parity=parity,
        agreement=agreement,
        overrides=checkpoint.overrides,
        figures=checkpoint.figures,
        inspect={portrait.name: portrait.title for portrait in portraits},
        made_with={p: version(p).split("+")[0] for p in PACKAGES} | {"onnxruntime": onnxruntime.__version__},
        files={name: sha256(folder / name) for name in (*graphs, WEIGHTS, *pictures)},
    )
    (folder / MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n")
    return manifest


def _portraits(model: VisionTransformer, distance: Portrait) -> list[Portrait]:
    """The pictures that this model has of itself, in the order to show them."""
    return [portrait for portrait in (filters(model), positions(model), relative_bias(model), distance) if portrait]
