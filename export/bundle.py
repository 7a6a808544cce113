"""Checkpoint to bundle: trace, check and describe in a temporary folder, then move that folder into place."""

import dataclasses
import sys
from functools import partial
from importlib.metadata import version
from pathlib import Path

import onnx
import onnxruntime

from app.bundle import (
    CLASSIFY_GRAPH,
    COMBINED_GRAPH,
    EXPLAIN_GRAPH,
    MANIFEST,
    PICTURE_FORMATS,
    WEIGHTS,
    Calibration,
    Manifest,
    Precision,
    Tokens,
    picture_file,
    sha256,
)
from app.inference.onnxruntime import OnnxEngine
from app.inference.openvino import OpenVinoEngine
from app.machine import allowed_cores
from export.agreement import agreement
from export.answers import Answers, answers
from export.calibration import Uncalibrated, calibration
from export.combine import combine
from export.graphs import ExplainGraph
from export.image_spec import image_spec
from export.images import DrawnImages, Images
from export.known_answer import known_answer
from export.onnx_file import SharedWeights, part
from export.parity import check_parity
from export.portraits.gallery import portraits
from export.precision import model_for
from export.progress import working
from export.trace import trace
from model.checkpoints.checkpoint import Checkpoint
from model.durable import replacing_folder

GIVEN_PARITY = 8  # given images that parity is checked on, besides drawn ones
PACKAGES = ("torch", "onnx", "onnxscript", "numpy", "pillow")


def write_bundle(
    checkpoint: Checkpoint,
    out: Path,
    *,
    replace: bool,
    precision: Precision = "fp32",
    images: Images | None = None,
    calibrate: bool = False,
) -> Manifest:
    """Write the bundle at `out`.

    `images` are those to measure with, in place of drawn ones. With `calibrate`, which needs labels for them, scores
    are those of the logits divided by the temperature that fits the images best.
    Raises FileExistsError when `out` exists and `replace` is not set, ParityError when the graphs do not compute what
    the model computes, ValueError when its numbers do not fit `precision` or cannot be calibrated. After an error
    nothing new is left on disk, and what was at `out` is still there.
    """
    if out.exists() and not replace:
        raise FileExistsError(f"{out} exists; --replace replaces it")
    if calibrate and not (images and images.labelled):
        raise ValueError("--calibrate needs labelled images: --pictures FOLDER, and in it a folder for each label")
    if calibrate and checkpoint.score != "softmax":
        raise ValueError("--calibrate fits one temperature to softmax, and the scores of this model are sigmoid")
    out.parent.mkdir(parents=True, exist_ok=True)
    with replacing_folder(out) as folder:
        return _fill(folder, checkpoint, precision, images, calibrate=calibrate)


def _fill(
    folder: Path, checkpoint: Checkpoint, precision: Precision, given: Images | None, *, calibrate: bool
) -> Manifest:
    if calibrate and not checkpoint.labels:
        raise ValueError("the model has no head, so it has no scores to calibrate")
    weights = SharedWeights(folder / WEIGHTS)
    spec, preprocessing = image_spec(checkpoint.preprocessing), checkpoint.preprocessing
    images = given or DrawnImages(spec, labels=checkpoint.labels)
    with working("tracing"):
        model = model_for(checkpoint, precision, images.ranges)
        explaining = partial(ExplainGraph, model, preprocessing, precision=precision, score=checkpoint.score)
        explain = explaining()
        shapes = _write(explain, folder, weights)
    kind = OpenVinoEngine if precision == "bf16" else OnnxEngine  # ONNX Runtime has no kernels in bfloat16
    open_engine = partial(
        kind, graph=folder / COMBINED_GRAPH, shapes=shapes, precision=precision, threads=allowed_cores()
    )
    engine = open_engine()
    compared = checkpoint.config.num_classes > 0 and not (precision == "fp32" and given is None)
    measured = answers(checkpoint, images, engine) if compared else None
    calibrated = _calibration(measured, checkpoint, required=calibrate) if measured else None
    if calibrate and calibrated:
        checkpoint = dataclasses.replace(checkpoint, temperature=calibrated.temperature)
        with working("tracing again"):
            _write(explaining(temperature=checkpoint.temperature), folder, weights)
        engine = open_engine()
    with working("comparing with PyTorch"):
        some = given.ranges()[:GIVEN_PARITY] if given else None
        comparison = check_parity(checkpoint, spec, engine, precision, given=some)
        answer = known_answer(checkpoint, spec, engine, precision)
    with working("drawing"):
        gallery = portraits(checkpoint.model, comparison.distance)
    for portrait in gallery:
        portrait.write(folder)
    pictures = [picture_file(portrait.name, kind) for portrait in gallery for kind in PICTURE_FORMATS]
    config = checkpoint.model.config
    manifest = Manifest(
        format=2,
        name=checkpoint.name,
        family=checkpoint.family,
        precision=precision,
        image=spec,
        tokens=Tokens(patch=config.patch_size, grid=config.grid, prefix=config.prefix),
        layers=config.depth,
        heads=config.heads,
        pool=config.pool,
        explains=shapes,
        features=config.embedding,
        labels=checkpoint.labels,
        labels_from=checkpoint.labels_from,
        prompts=checkpoint.prompts,
        wordnet=checkpoint.wordnet,
        score=checkpoint.score,
        temperature=checkpoint.temperature,
        parity=comparison.parity,
        agreement=agreement(measured, images, checkpoint) if measured else None,
        calibration=calibrated,
        known_answer=answer,
        overrides=checkpoint.overrides,
        figures=checkpoint.figures,
        recipe=checkpoint.recipe,
        inspect={portrait.name: portrait.title for portrait in gallery},
        made_with={p: version(p).split("+")[0] for p in PACKAGES} | {"onnxruntime": onnxruntime.__version__},
        files={
            name: sha256(folder / name) for name in (CLASSIFY_GRAPH, EXPLAIN_GRAPH, COMBINED_GRAPH, WEIGHTS, *pictures)
        },
    )
    (folder / MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n")
    return manifest


def _write(graph: ExplainGraph, folder: Path, weights: SharedWeights) -> dict[str, tuple[int, ...]]:
    """Write the explaining graph, as the lean graph the part of it that gives the answer alone, and both in one. The
    shapes of one image's outputs of the explaining graph.
    """
    proto = trace(graph)
    weights.externalise(proto)
    onnx.save(proto, folder / EXPLAIN_GRAPH)
    onnx.save(part(proto, graph.answers), folder / CLASSIFY_GRAPH)
    onnx.save(combine(proto, graph.answers), folder / COMBINED_GRAPH)
    return {o.name: tuple(size.dim_value for size in o.type.tensor_type.shape.dim[1:]) for o in proto.graph.output}


def _calibration(measured: Answers, checkpoint: Checkpoint, *, required: bool) -> Calibration | None:
    """That of the lean graph. None, or Uncalibrated where it is `required`, if there is none."""
    if measured.labels is None or checkpoint.score != "softmax":
        return None
    try:
        return calibration(measured.found, measured.labels)
    except Uncalibrated as reason:
        if required:
            raise
        print(f"Calibration is not measured: {reason}.", file=sys.stderr)  # noqa: T201
        return None
