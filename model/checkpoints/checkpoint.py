"""The contents of a checkpoint, in every format of its file."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from model.config import ViTConfig
from model.preprocessing import Preprocessing

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from torch import Tensor

    from model.text import TextTower
    from model.unlike import Unlike  # needs PyTorch, which takes seconds to import
    from model.vit import VisionTransformer

MOST_NAMED = 8  # in a message


class Origin(NamedTuple):
    """Where a fact comes from: stated in the file or beside it, read from tensors, set by hand, or guessed."""

    source: Literal["stated", "read", "by hand", "guessed"]
    where: str  # in words

    @classmethod
    def stated(cls, where: str) -> "Origin":
        return cls("stated", where)

    @classmethod
    def read(cls, where: str) -> "Origin":
        return cls("read", where)

    @classmethod
    def guessed(cls, where: str) -> "Origin":
        return cls("guessed", where)


class CheckpointError(Exception):
    """The file cannot be loaded so that the model computes what its library computes; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Description:
    """Everything but the weights."""

    name: str = ""  # a family's loader leaves it to the source unless the file has one
    family: str  # the library whose outputs the model reproduces
    architecture: str  # the name in that library
    config: ViTConfig
    grid: tuple[int, int] | None = None  # rows and columns of the positions in the file; None if it has none
    preprocessing: Preprocessing
    labels: tuple[str, ...] = ()  # one for each class; a family's loader gives none if the checkpoint has none
    wordnet: tuple[str, ...] = ()  # ids of the synsets that the labels stand for, where they are known
    labels_problem: str = ""  # why the names that it has cannot be read
    labels_from: str = ""  # where they were found; empty for a checkpoint of this project
    labels_advice: str = ""  # a sentence for a person, if they are a guess
    advice: str = ""  # a sentence for a person, if another reading of the file is as likely
    problems: tuple[str, ...] = ()  # sentences on what a person has to give or to correct before it can be loaded
    dataset: str = ""  # where the checkpoint names the ImageNet that it was trained on
    weights: str = ""  # which were taken, where the file has several
    unread: tuple[str, ...] = ()  # names in the file of counters, losses and metrics, which are not weights
    score: Literal["softmax", "sigmoid"] = "softmax"
    temperature: float = 1.0  # logits are divided by it before the score
    text_tower: bool = False  # whether labels that a person types can become the classes
    prompts: tuple[str, ...] = ()  # with which they did
    origins: dict[str, Origin] = field(default_factory=dict)  # of each fact
    overrides: dict[str, str] = field(default_factory=dict)  # facts that a person has set
    figures: dict[str, float] = field(default_factory=dict)  # measured on held-out images
    recipe: dict[str, Any] = field(default_factory=dict)  # JSON: how a checkpoint of this project was learned
    history: tuple[dict[str, Any], ...] = ()  # JSON: the points of its curves


@dataclass(frozen=True, kw_only=True, eq=False)
class KnownImages:
    """What was learned of images like those that the model is for, n of them held out."""

    pictures: int
    unlike: "Unlike"
    held_out: "Tensor"  # float32 (n,), in rising order: how unlike each is to others, less the offset of its label
    labels: "Tensor"  # int64: those that the model gives held-out images
    offsets: "Tensor"  # float32: how much more unlike than all of them images of these labels are
    changed_by: tuple[str, ...] = ()  # facts set by hand, with which the model reads something else of images


@dataclass(frozen=True, kw_only=True, eq=False)
class Texts:
    """A text tower, its tokeniser, and how its vectors are compared with those of images."""

    tower: "TextTower"  # in eval mode
    tokeniser: "Tokenizer"  # pads, and cuts where the library does
    scale: float  # logits are scale * cosine + bias
    bias: float
    known: "Tensor"  # what the library gives for PROBES that the tower can read whole, (n, F); the tower for OpenCLIP's
    probes: tuple[str, ...]  # these


@dataclass(frozen=True, kw_only=True)
class Checkpoint(Description):
    model: "VisionTransformer"  # in eval mode
    known: KnownImages | None = None
    texts: Texts | None = None  # where they were asked for


def first_few(names: Sequence[str], *, most: int = MOST_NAMED, separator: str = ", ") -> str:
    """Some of the names for a message, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return separator.join(names[:most]) + more
