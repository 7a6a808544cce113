"""The bundle: a folder with the ONNX graphs and the manifest that says what the model is.

This is the contract between export, which writes it, and the service, which reads it. It is defined here alone.
"""

import hashlib
import mmap
import os
from codecs import BOM_UTF8
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise, takewhile
from math import prod
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Literal, get_args
from weakref import finalize

from annotated_types import Ge, Interval, Len
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    JsonValue,
    PositiveFloat,
    ValidationError,
    model_validator,
)

from app.errors import CannotStart
from app.images.preprocess import ImageSpec, Side

PictureFormat = Literal["png", "json"]

MANIFEST = "manifest.json"
CLASSIFY_GRAPH = "classify.onnx"
EXPLAIN_GRAPH = "explain.onnx"
TOKENS_GRAPH = "tokens.onnx"
COMBINED_GRAPH = "combined.onnx"
WEIGHTS = "weights.bin"
TEXT_GRAPH = "text.onnx"
TEXT_WEIGHTS = "text.bin"
TOKENISER = "tokenizer.json"
OF_TEXT = (TEXT_GRAPH, TEXT_WEIGHTS, TOKENISER)  # files of a text tower
UPGRADING = "docs/upgrading.md"
CHECKPOINTS = {".safetensors", ".bin", ".pt", ".pth", ".npz"}  # file names of libraries
PICTURE_FORMATS: tuple[PictureFormat, ...] = ("png", "json")

TOKENS = "tokens"  # the array with the tokens after the final norm
OF_LAYER = "layer_"  # and how the names of those of layers begin

Graph = Literal["classify", "explain", "tokens"]
GRAPHS: tuple[Graph, ...] = get_args(Graph)
GRAPH_FILES: dict[Graph, str] = {"classify": CLASSIFY_GRAPH, "explain": EXPLAIN_GRAPH, "tokens": TOKENS_GRAPH}
Shapes = Mapping[str, tuple[int, ...]]  # of one image's outputs of a graph, in their order
Precision = Literal["fp32", "bf16", "int8", "fp16"]
ON_GPUS: tuple[Precision, ...] = ("fp32", "fp16")  # CPUs run every precision
Prefix = Literal["class", "distillation", "register"]
Count = Annotated[int, Interval(ge=1, le=2**20)]  # of numbers; beyond this and the next, one is a mistake
Few = Annotated[int, Interval(ge=1, le=2**10)]
LEAST_TEMPERATURE = 1e-6  # with much smaller ones, logits overflow
Temperature = Annotated[float, Field(ge=LEAST_TEMPERATURE, allow_inf_nan=False)]
Measured = dict[str, JsonValue]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class BundleError(CannotStart):
    """The folder is not a bundle that this service can serve; the message says why."""


def graph_files(precision: Precision, *, tokens: bool = True) -> tuple[str, ...]:
    """The graphs that a bundle has: the one that CPUs run, and those that GPUs run where they run the precision. One
    gives `tokens`, which bundles of before lack.
    """
    of_tokens = (TOKENS_GRAPH,) if tokens else ()
    return (CLASSIFY_GRAPH, EXPLAIN_GRAPH, *of_tokens, COMBINED_GRAPH) if precision in ON_GPUS else (COMBINED_GRAPH,)


def outputs_of(explains: Shapes, arrays: Shapes) -> dict[Graph, Shapes]:
    """The outputs of each graph of a bundle in their order, and the shape of one image's. Those that the explaining
    graph has before attention are the answers, which every graph gives.
    """
    answers = dict(takewhile(lambda output: output[0] != "attention", explains.items()))
    lean: dict[Graph, Shapes] = {"classify": answers, "explain": explains}
    return lean | {"tokens": answers | dict(arrays)} if arrays else lean


def array_of(layer: int) -> str:
    """The name of the array with the tokens after so many blocks, without the norm."""
    return f"{OF_LAYER}{layer}"


def is_array(output: str) -> bool:
    """Whether an output of a graph is an array of tokens."""
    return output == TOKENS or output.startswith(OF_LAYER)


def picture_file(name: str, kind: PictureFormat) -> str:
    """Where one of the model's own pictures lies in a bundle: drawn, or as its numbers."""
    return f"inspect/{name}.{kind}"


def _allow_more(schema: dict[str, Any]) -> None:
    """A file that has too much is wrong; an answer that has more than its schema is of a later version."""
    del schema["additionalProperties"]


class Frozen(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        ser_json_bytes="base64",
        val_json_bytes="base64",
        json_schema_extra=_allow_more,
    )


class Tokens(Frozen):
    """Order of the tokens: the prefix, then the patches row by row."""

    patch: Side  # pixels
    grid: tuple[Side, Side]  # rows, columns
    prefix: tuple[Prefix, ...]


Source = Literal["fit", "folder"]  # those that a checkpoint has learned, or a person's own at export


class Familiarity(Frozen):
    """The images that the model knows, measured at export with the lean graph, or by `fit` with its network.

    The output `unlike` of the graphs compares an image with them: model/unlike.py.
    """

    pictures: int
    held_out: int  # of these, which were compared with the others as new images are; familiarity is a share of them
    source: Source


class HeldOut(Frozen):
    """Of held-out images, the output `unlike` as if they were new: app/inference/familiarity.py."""

    unlike: Annotated[tuple[FiniteFloat, ...], Len(1)]  # in rising order, each less the offset of its label
    offsets: dict[Annotated[int, Ge(0)], FiniteFloat]  # by the index of the label that the model gives; else 0

    @model_validator(mode="after")
    def _rises(self) -> "HeldOut":
        if any(one > other for one, other in pairwise(self.unlike)):
            raise ValueError("unlike is not in rising order")
        return self


class Tolerance(Frozen):
    """What another machine's numbers may differ by from PyTorch's, each in the unit of `parity`.

    fp32: the tolerance of parity, or four times what export found for this very image where that is more, because
    where attention is sharp, rounding weighs more. int8 and fp16: every kind of processor adds in another order, and
    where the last bits differ, rounding to few bits tips over. So a replica may be as far from PyTorch as export was,
    several times. What computes nonsense is much further away.
    """

    logits: PositiveFloat
    embedding: PositiveFloat
    unlike: PositiveFloat = 1e-4  # bundles that do not know their images may be without
    attention: PositiveFloat
    rollout: PositiveFloat
    evidence: PositiveFloat
    distance: PositiveFloat
    lens: PositiveFloat
    tokens: PositiveFloat = 1e-4  # of every array; bundles of before have none


class KnownAnswer(Frozen):
    """A small image, and what PyTorch computed for it in float32: app/inference/known_answer.py compares."""

    size: tuple[Side, Side]  # height, width
    pixels: bytes  # uint8, (height, width, 3); in JSON as URL-safe base64
    logits: tuple[float, ...]  # none without a head, nor classes
    # The most likely ones, which evidence and lens are for, the most likely first; -2 where it is for a direction.
    classes: tuple[int, ...]
    sums: dict[str, tuple[float, ...]]  # of each other output of the graphs, flat
    tolerance: Tolerance

    @model_validator(mode="after")
    def _is_whole(self) -> "KnownAnswer":
        if len(self.pixels) != 3 * self.size[0] * self.size[1]:
            raise ValueError("pixels are not those of an image of this size")
        return self


class Fact(Frozen):
    """One fact of the model: a switch of its network, a part of its preprocessing, how many labels, or the score."""

    value: JsonValue
    source: Literal["stated", "read", "by hand", "guessed"]  # in the checkpoint, from its tensors, by --set, or not
    where: str  # in words, such as "args in the file"


class TextFacts(Frozen):
    """The text tower, with which an image is compared: logits are scale * cosine + bias."""

    length: Few  # most tokens of a text
    scale: PositiveFloat
    bias: FiniteFloat
    parity: FiniteFloat  # largest difference of a number of a text's vector from its library


class KnownText(Frozen):
    """A text, and what PyTorch computed for it in float32."""

    text: str
    vector: tuple[FiniteFloat, ...]


class Manifest(Frozen):
    format: Literal[4]
    name: Annotated[str, Field(min_length=1, max_length=200)]
    family: str  # the library that the weights come from, whose numerics the graphs reproduce
    precision: Precision
    image: ImageSpec
    tokens: Tokens
    layers: Few
    heads: Few
    # What the head reads; app/maps/attention.py: ROWS.
    pool: Literal["cls", "cls_mean", "mean", "mean_all", "map", "map_all"]
    explains: dict[str, tuple[Count, ...]]  # outputs of the explaining graph, and the shape of one image's
    # Arrays that the graph of tokens gives beside the answers, and the shape of one image's: `tokens` after the final
    # norm, and those of some layers. None in bundles of before.
    arrays: dict[str, tuple[Count, Count]] = {}
    directions: Annotated[int, Ge(0)] = 0  # that the explaining graph takes at once; bundles of before take none
    features: Count  # numbers of an embedding: what the head reads
    labels: tuple[str, ...]  # none for a model without a head
    labels_from: str = ""  # where they were found; empty for a checkpoint of this project
    prompts: tuple[str, ...] = ()  # sentences with {} for the label, where a text tower has read the labels
    wordnet: tuple[str, ...] = ()  # WordNet id of each label, such as n02099601, where they are known
    score: Literal["softmax", "sigmoid"]
    temperature: Temperature = 1.0  # scores are those of logits / temperature
    # What export/measured.py describes, and the service only shows:
    parity: Measured
    agreement: Measured | None = None  # None for fp32 without a folder of images: parity says all; and without labels
    likeness: Measured | None = None  # as agreement, but where there are no labels
    calibration: Measured | None = None  # None where no labelled images were given
    familiarity: Familiarity | None = None  # None where no images were given, or too few
    held_out: HeldOut | None = None  # of these
    text: TextFacts | None = None  # None without a text tower
    known_text: KnownText | None = None  # of it
    mean: tuple[FiniteFloat, ...] = ()  # embedding of the images that the bundle knows; empty without any
    known_answer: KnownAnswer
    facts: dict[str, Fact] = {}  # by name, guesses first; none in bundles of before
    overrides: dict[str, str] = {}  # facts that a person has set, in place of what the checkpoint says
    figures: dict[str, float] = {}  # the checkpoint's own, measured on held-out images in float32
    recipe: dict[str, JsonValue] = {}  # how a checkpoint of this project was learned
    inspect: dict[str, str] = {}  # titles of the model's own pictures by name, in the order to show them
    made_with: dict[str, str]
    files: dict[str, Sha256]

    @model_validator(mode="after")
    def _complete(self) -> "Manifest":
        pictures = {picture_file(name, kind) for name in self.inspect for kind in PICTURE_FORMATS}
        of_text = OF_TEXT if self.text else ()
        graphs = graph_files(self.precision, tokens=bool(self.arrays))
        missing = {*graphs, WEIGHTS, *pictures, *of_text} - self.files.keys()
        if missing:
            raise ValueError(f"files lacks {', '.join(sorted(missing))}")
        if len(self.known_answer.logits) != len(self.labels):
            raise ValueError("known_answer does not have one logit for each label")
        sees = len(self.tokens.prefix) + prod(self.tokens.grid)
        if self.explains.get("attention") != (self.layers, self.heads, sees):
            raise ValueError("layers, heads and tokens are not those of attention in explains")
        if self.explains.get("embedding") != (self.features,):
            raise ValueError("features are not those of embedding in explains")
        if any(shape[0] != sees for shape in self.arrays.values()) or (self.arrays and TOKENS not in self.arrays):
            raise ValueError("arrays are not those of the tokens")
        if (len(self.known_text.vector) if self.known_text else 0) != (self.features if self.text else 0):
            raise ValueError("known_text is not that of a text tower with these features")
        of_unlike = (1,) if self.familiarity else None
        if self.explains.get("unlike") != of_unlike or bool(self.held_out) != bool(self.familiarity):
            raise ValueError("familiarity, held_out and unlike in explains are not those of one another")
        if self.image.size != tuple(side * self.tokens.patch for side in self.tokens.grid):
            raise ValueError("tokens do not cover an image of this size")
        if self.known_answer.sums.keys() != {*self.explains, *self.arrays} - {"logits", "classes"}:
            raise ValueError("known_answer does not have the outputs of the graphs")
        return self

    @property
    def graphs(self) -> dict[Graph, Shapes]:
        """The outputs of each graph."""
        return outputs_of(self.explains, self.arrays)

    @property
    def layers_of_arrays(self) -> tuple[int, ...]:
        """The layers whose tokens the bundle gives, from 1."""
        return tuple(layer for layer in range(1, self.layers + 1) if array_of(layer) in self.arrays)


class Weights:
    """A file of weights, which the model reads as it runs. It stays open: its name may lead to another file later."""

    def __init__(self, path: Path, *, checksum: str) -> None:
        """`checksum` is the SHA-256 that the file should have. Raises OSError."""
        self._checksum = checksum
        self._file = os.open(path, os.O_RDONLY)
        finalize(self, os.close, self._file)
        self._checked = self._state()

    def changed(self) -> bool:
        """Whether the file has been written to since. Another file under the same name, as `mv` and the exporter put it
        there, does not count. Raises OSError.
        """
        if (state := self._state()) == self._checked:
            return False
        # Links and permissions change the last number too, and so does a write that puts the time of the file back.
        if state[:-1] != self._checked[:-1] or self._sha256() != self._checksum:
            return True
        self._checked = state
        return False

    def _state(self) -> tuple[int, ...]:
        state = os.fstat(self._file)
        return state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns

    def _sha256(self) -> str:
        """Read without mapping the file: it may be cut off meanwhile."""
        with open(self._file, "rb", closefd=False) as file:
            file.seek(0)
            return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(kw_only=True, eq=False)
class Bundle:
    """A folder with a valid manifest."""

    folder: Path
    manifest: Manifest
    digest: str  # sha256 of the manifest, and through its checksums of everything

    def __post_init__(self) -> None:
        self._weights: list[Weights] = []

    def check_files(self) -> None:
        """Raises BundleError when a file is missing or altered. Reads every byte."""
        with suppress(OSError):
            self._weights = [
                Weights(self.folder / name, checksum=self.manifest.files[name])
                for name in (WEIGHTS, TEXT_WEIGHTS)
                if name in self.manifest.files
            ]
        for name, expected in self.manifest.files.items():
            file = self.folder / name
            exists = os.path.isfile(file)  # noqa: PTH113 (False too for what cannot be a name, and links in a circle)
            if not exists or not file.resolve().is_relative_to(self.folder.resolve()):
                raise BundleError(f"{self.folder} lacks {name!r}, which its manifest lists")
            if sha256(file) != expected:
                raise BundleError(f"{file} does not have the checksum that the manifest states: it was altered")

    def weights_changed(self) -> bool:
        """Whether weights that were checked have been written to since. Raises OSError."""
        return any(weights.changed() for weights in self._weights)


def load_bundle(folder: Path) -> Bundle:
    """Read and check a manifest. Raises BundleError when it is missing or unknown."""
    path = folder / MANIFEST
    if not path.is_file():
        raise _no_bundle(folder)
    text = path.read_bytes()
    try:
        manifest = Manifest.model_validate_json(text.removeprefix(BOM_UTF8))  # of editors on Windows
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'manifest'}: {e['msg']}" for e in error.errors()[:5])
        wrong = wrong.encode("unicode_escape").decode()  # names may have what a terminal obeys
        to_do = f"Export the model again ({UPGRADING})."
        raise BundleError(f"{path} is not a manifest of format 4 ({wrong}). {to_do}") from None
    return Bundle(folder=folder, manifest=manifest, digest=hashlib.sha256(text).hexdigest())


def _no_bundle(path: Path) -> BundleError:
    """Says which mistake it is: a wrong path, a checkpoint, or a folder of something else."""
    if not path.exists():
        return BundleError(f"{path} does not exist (VIT_BUNDLE)")
    if path.is_file() or any(file.suffix in CHECKPOINTS for file in path.iterdir()):
        command = f"vit-serve export --checkpoint {quote(str(path))} --out {quote(f'bundles/{path.resolve().stem}')}"
        return BundleError(f"{path} looks like a checkpoint, not a bundle. Make a bundle of it: {command}")
    return BundleError(f"{path} is not a bundle: it has no {MANIFEST}. `vit-serve export` makes one of a checkpoint")


def sha256(file: Path) -> str:
    """The SHA-256 of a file, in one call: unlike many calls, it needs the interpreter only once, while other threads
    start the service.
    """
    with file.open("rb") as opened:
        if not os.fstat(opened.fileno()).st_size:  # nothing can be mapped
            return hashlib.sha256().hexdigest()
        with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return hashlib.sha256(data).hexdigest()
