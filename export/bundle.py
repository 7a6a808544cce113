"""Checkpoint to bundle: trace, check and describe in a temporary folder, then move that folder into place."""

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
from export.graphs import ClassifyGraph, ExplainGraph
from export.image_spec import image_spec
from export.onnx_file import SharedWeights, trace
from export.parity import check_parity
from export.portraits.gallery import portraits
from export.precision import model_for
from model.checkpoints.checkpoint import Checkpoint

PACKAGES = ("torch", "onnx", "onnxscript", "numpy", "pillow")


def write_bundle(checkpoint: Checkpoint, out: Path, *, replace: bool, precision: Precision = "fp32") -> Manifest:
    """Write the bundle at `out`.

    Raises FileExistsError when `out` exists and `replace` is not set, ParityError when the graphs do not compute what
    the model computes, ValueError when its numbers do not fit `precision`. After an error nothing new is left on disk,
    and what was at `out` is still there.
    """
    if out.exists() and not replace:
        raise FileExistsError(f"{out} exists; --replace replaces it")
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
    model = model_for(checkpoint, spec, precision)
    explain = ExplainGraph(model, preprocessing, precision=precision, score=checkpoint.score)
    graphs = {CLASSIFY_GRAPH: ClassifyGraph(model, preprocessing, precision=precision), EXPLAIN_GRAPH: explain}
    for file, graph in tqdm(graphs.items(), desc="tracing", unit="graph"):
        proto = trace(graph)
        weights.externalise(proto)
        onnx.save(proto, folder / file)
    engine = OnnxEngine(folder=folder, image_size=spec.size, threads=allowed_cores())
    parity = check_parity(checkpoint, spec, engine, precision)
    compared = precision != "fp32" and checkpoint.config.num_classes > 0
    agreement = measure_agreement(checkpoint, spec, engine) if compared else None
    gallery = portraits(checkpoint.model, engine, spec)
    for portrait in gallery:
        portrait.write(folder)
    pictures = [picture_file(portrait.name, kind) for portrait in gallery for kind in PICTURE_FORMATS]
    config = checkpoint.model.config
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
        features=config.embedding,
        labels=checkpoint.labels,
        labels_from=checkpoint.labels_from,
        prompts=checkpoint.prompts,
        wordnet=checkpoint.wordnet,
        score=checkpoint.score,
        parity=parity,
        agreement=agreement,
        overrides=checkpoint.overrides,
        figures=checkpoint.figures,
        inspect={portrait.name: portrait.title for portrait in gallery},
        made_with={p: version(p).split("+")[0] for p in PACKAGES} | {"onnxruntime": onnxruntime.__version__},
        files={name: sha256(folder / name) for name in (*graphs, WEIGHTS, *pictures)},
    )
    (folder / MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n")
    return manifest
