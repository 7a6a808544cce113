"""Checkpoint to bundle: trace, check and describe in a temporary folder, then move that folder into place."""

import dataclasses
import json
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import onnx
import onnxruntime

from app.bundle import (
    CLASSIFY_GRAPH,
    COMBINED_GRAPH,
    EXPLAIN_GRAPH,
    MANIFEST,
    OF_TEXT,
    PICTURE_FORMATS,
    TOKENS_GRAPH,
    WEIGHTS,
    Fact,
    Manifest,
    Precision,
    Shapes,
    Source,
    Tokens,
    graph_files,
    is_array,
    outputs_of,
    picture_file,
    sha256,
)
from app.inference.engine import Engine, directions_of
from app.inference.onnxruntime import OnnxEngine
from app.inference.openvino import OpenVinoEngine
from app.machine import allowed_cores
from export.agreement import Answers, agreement, answers, chance, of_both
from export.calibration import Uncalibrated, calibration, check_enough, is_far
from export.combine import combine
from export.embeddings import likeness
from export.familiarity import brought, described, held_out, mean_embedding, of_folder
from export.graphs import ExplainGraph
from export.image_spec import image_spec
from export.images import Images, drawn_images
from export.known_answer import known_answer
from export.measured import Calibration
from export.messages import warn
from export.onnx_file import cast_apart, externalise, part
from export.parity import check_parity
from export.pictures.model_pictures import model_pictures
from export.place import check_bundle_place
from export.precision import model_for
from export.texts import write_texts
from export.trace import trace
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.describe import facts_of
from model.durable import replacing_folder
from model.progress import working
from model.vit import VisionTransformer

GIVEN_PARITY = 8  # given images that parity is checked on, besides drawn ones
SHARED = (  # fields of a manifest that a checkpoint has too
    *("name", "family", "labels", "labels_from", "wordnet", "prompts"),
    *("score", "temperature", "overrides", "figures", "recipe"),
)
PACKAGES = ("torch", "onnx", "onnxscript", "numpy", "pillow")


def write_bundle(
    checkpoint: Checkpoint,
    out: Path,
    *,
    replace: bool,
    precision: Precision = "fp32",
    images: Images | None = None,
    calibrate: bool = False,
    layers: Sequence[int] = (),
) -> Manifest:
    """Write the bundle at `out`.

    `layers` are those whose tokens the bundle gives, from 1, beside the tokens after the final norm. `images` are those
    to measure with, in place of drawn ones. With `calibrate`, which needs labels for them, scores are those of the
    logits divided by the temperature that fits the images best.
    Raises FileExistsError when `out` exists and `replace` is not set, or holds anything but a bundle; ParityError when
    the graphs do not compute what the model computes; ValueError when its numbers do not fit `precision` or cannot be
    calibrated. After an error nothing new is left on disk, and what was at `out` is still there.
    """
    check_bundle_place(out, replace=replace)
    check_layers(layers, checkpoint.config.depth)
    if calibrate:
        _check_calibration(checkpoint, images)
    out.parent.mkdir(parents=True, exist_ok=True)
    with replacing_folder(out) as folder:
        manifest = _fill(folder, checkpoint, precision, images, calibrate=calibrate, layers=layers)
        check_bundle_place(out, replace=replace)  # again, as another export may have taken it meanwhile
    return manifest


def check_layers(layers: Sequence[int], depth: int) -> None:
    """Raises ValueError for a layer that a network of so many does not have."""
    if beyond := [str(layer) for layer in layers if not 1 <= layer <= depth]:
        raise ValueError(f"--layers: the model has the layers 1 to {depth}, and not {', '.join(beyond)}")


def _check_calibration(checkpoint: Checkpoint, images: Images | None) -> None:
    if images is None or images.labels is None:
        why = f"; {images.unlabelled}" if images and images.unlabelled else ""
        raise ValueError(
            f"--calibrate needs labelled images: --pictures FOLDER, and in it a folder for each label{why}"
        )
    if checkpoint.score != "softmax":
        raise ValueError("--calibrate fits one temperature to softmax, and the scores of this model are sigmoid")
    if not checkpoint.labels:
        raise ValueError("the model has no head, so it has no scores to calibrate")
    check_enough(len(images.labels))


def _fill(
    folder: Path,
    checkpoint: Checkpoint,
    precision: Precision,
    given: Images | None,
    *,
    calibrate: bool,
    layers: Sequence[int],
) -> Manifest:
    images = given
    if images is None and precision != "fp32":
        with working("drawing images"):
            images = drawn_images(image_spec(checkpoint.preprocessing), labels=checkpoint.labels)
    model = model_for(checkpoint, precision, None if images is None else images.ranges)
    of_checkpoint = checkpoint.known
    known = brought(checkpoint, precision, given=given is not None)
    source: Source = "fit" if known else "folder"
    learning = given is not None and known is None
    checkpoint = dataclasses.replace(checkpoint, known=known)
    engine = write_graphs(folder, model, checkpoint, precision, layers=layers, learning=learning)
    if precision in ("bf16", "fp16") and engine.computes_in != precision:
        warn(f"This processor computes {precision} in {engine.computes_in}: figures show only a part of the rounding.")
    both = of_both(checkpoint, images, engine) if images else None
    answered = answers(both, images) if both and images and checkpoint.config.num_classes else None
    alike = likeness(both, images) if both and images and not checkpoint.config.num_classes else None
    if learning and given and both:
        known = of_folder(given, engine, both)
    checkpoint = dataclasses.replace(checkpoint, known=known)
    calibrated = _calibration(answered, checkpoint, required=calibrate) if answered else None
    if calibrate and calibrated:  # the lens has scores of the classes, and so the temperature
        checkpoint = dataclasses.replace(checkpoint, temperature=calibrated.temperature)
    if learning or (calibrate and calibrated):
        engine = write_graphs(folder, model, checkpoint, precision, layers=layers)
    with working("comparing with PyTorch"):
        some = given.ranges[:GIVEN_PARITY] if given else None
        parity, distance = check_parity(checkpoint, engine, precision, given=some)
        answer = known_answer(checkpoint, engine, precision)
    text, known_text = write_texts(checkpoint.texts, folder) if checkpoint.texts else (None, None)
    with working("drawing"):
        pictures = model_pictures(checkpoint.model, distance)
        files = [picture_file(picture.name, kind) for picture in pictures for kind in PICTURE_FORMATS]
        place = (folder / files[0]).parent
        place.mkdir()
        for picture in pictures:
            picture.write(place)
    of_text = OF_TEXT if text else ()
    manifest = Manifest(
        format=4,
        **_facts(checkpoint),
        precision=precision,
        explains=dict(engine.layout["explain"]),
        arrays={name: (shape[0], shape[1]) for name, shape in engine.layout["tokens"].items() if is_array(name)},
        parity=parity.model_dump(),
        agreement=agreement(answered, images, checkpoint).model_dump() if images and answered else None,
        likeness=alike.model_dump() if alike else None,
        calibration=calibrated.model_dump() if calibrated else None,
        familiarity=described(known, source) if known else None,
        held_out=held_out(known) if known else None,
        mean=mean_embedding(of_checkpoint, both if given else None, width=checkpoint.config.embedding),
        known_answer=answer,
        text=text,
        known_text=known_text,
        directions=directions_of(engine.layout)[0],
        inspect={picture.name: picture.title for picture in pictures},
        made_with={p: version(p).split("+")[0] for p in PACKAGES} | {"onnxruntime": onnxruntime.__version__},
        files={name: sha256(folder / name) for name in (*graph_files(precision), WEIGHTS, *files, *of_text)},
    )
    (folder / MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")
    return manifest


def write_graphs(
    folder: Path,
    model: VisionTransformer,
    checkpoint: Checkpoint,
    precision: Precision,
    *,
    layers: Sequence[int] = (),
    learning: bool = False,
) -> Engine:
    """Write the graphs of a bundle in this precision: the parts of one that give the answers alone, with every map, and
    with the tokens; and all of these in one. All read one file of weights. While `learning` of images, their features
    stand in the place of `unlike`.

    Gives an engine of this machine that runs them.
    """
    graph = ExplainGraph(dataclasses.replace(checkpoint, model=model), precision, layers=layers, learning=learning)
    proto = trace(graph)
    externalise(proto, folder / WEIGHTS)
    cast_apart(proto)
    lean, tokens = part(proto, graph.answers), part(proto, (*graph.answers, *graph.arrays))
    explaining = part(proto, graph.outputs, inputs=[source.name for source in proto.graph.input])
    graphs = {CLASSIFY_GRAPH: lean, EXPLAIN_GRAPH: explaining, TOKENS_GRAPH: tokens}
    graphs[COMBINED_GRAPH] = combine(lean, explaining, tokens)
    for name in graph_files(precision):
        onnx.save(graphs[name], folder / name)
    kind = OpenVinoEngine if precision == "bf16" else OnnxEngine  # ONNX Runtime has no kernels in bfloat16
    return kind(
        graph=folder / COMBINED_GRAPH,
        layout=outputs_of(_shapes(explaining), {name: _shapes(tokens)[name] for name in graph.arrays}),
        precision=precision,
        threads=allowed_cores(),
    )


def _shapes(proto: onnx.ModelProto) -> Shapes:
    """Of one image's outputs."""
    outputs = {value.name: value.type.tensor_type.shape.dim[1:] for value in proto.graph.output}
    return {name: tuple(size.dim_value for size in sizes) for name, sizes in outputs.items()}


def _facts(checkpoint: Checkpoint) -> dict[str, Any]:
    config = checkpoint.model.config
    return {
        **{name: getattr(checkpoint, name) for name in SHARED},
        "facts": {
            name: Fact(value=json.loads(json.dumps(value)), **origin._asdict())
            for name, (value, origin) in facts_of(checkpoint).items()
        },
        "image": image_spec(checkpoint.preprocessing),
        "tokens": Tokens(patch=config.patch_size, grid=config.grid, prefix=config.prefix),
        "layers": config.depth,
        "heads": config.heads,
        "pool": config.pool,
        "features": config.embedding,
    }


def _calibration(answered: Answers, checkpoint: Checkpoint, *, required: bool) -> Calibration | None:
    """The calibration of the lean graph, or None without labels. Raises Uncalibrated if it is `required` and fails."""
    if answered.labels is None:
        return None
    if doubt := chance(answered):
        warn(f"Warning: {doubt}.")
    if checkpoint.score != "softmax":
        return None
    try:
        found = calibration(answered.lean, answered.labels, doubt=doubt)
    except Uncalibrated as reason:
        if required:
            raise
        warn(f"Calibration is not measured: {reason}.")
        return None
    if is_far(found.temperature):
        warn(f"Warning: a temperature of {found.temperature:.3g} is far from 1: some of these labels may be wrong.")
    return found
