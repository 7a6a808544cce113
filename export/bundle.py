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
    WEIGHTS,
    Manifest,
    Tokens,
    sha256,
)
from app.engine import OnnxEngine
from app.settings import allowed_cores
from export.graphs import ClassifyGraph, ExplainGraph
from export.image_spec import image_spec
from export.onnx_file import SharedWeights, trace
from export.parity import check_parity
from model.checkpoints.checkpoint import Checkpoint

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
    explain = ExplainGraph(checkpoint.model, checkpoint.preprocessing, score=checkpoint.score)
    graphs = {CLASSIFY_GRAPH: ClassifyGraph(checkpoint.model, checkpoint.preprocessing), EXPLAIN_GRAPH: explain}
    for file, graph in tqdm(graphs.items(), desc="tracing", unit="graph"):
        proto = trace(graph)
        weights.externalise(proto)
        onnx.save(proto, folder / file)
    spec = image_spec(checkpoint.preprocessing)
    engine = OnnxEngine(folder=folder, image_size=spec.size, device="cpu", threads=allowed_cores())
    config = checkpoint.model.config
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
        explains=explain.outputs,
        labels=checkpoint.labels,
        score=checkpoint.score,
        parity=check_parity(checkpoint, spec, engine),
        overrides=checkpoint.overrides,
        figures=checkpoint.figures,
        made_with={p: version(p).split("+")[0] for p in PACKAGES} | {"onnxruntime": onnxruntime.__version__},
        files={name: sha256(folder / name) for name in (*graphs, WEIGHTS)},
    )
    (folder / MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n")
    return manifest
