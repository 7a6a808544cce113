"""Which library a checkpoint is of, by the names of its tensors and the JSON files beside them."""

import re
from collections.abc import Mapping
from typing import Protocol

from model.checkpoints.checkpoint import CheckpointError, Description, first_few
from model.checkpoints.facts import Facts
from model.checkpoints.families import (
    facebook,
    google,
    huggingface,
    jeonsworld,
    lucidrains,
    native,
    openclip,
    timm,
    torchvision,
)
from model.checkpoints.families.timm_architectures import find
from model.checkpoints.source import Source
from model.checkpoints.tensors import State


class Family(Protocol):
    """A module of model/checkpoints/families/, which loads the files of one library."""

    HEADS: dict[str, str]  # how it calls linear heads, and what else may stand there: see heads.py

    def recognises(self, source: Source) -> bool:
        """Whether the tensors' names, and the JSON files beside them, are those of this library.

        Raises CheckpointError if they are, and the network is another than those that are supported.
        """

    def describe(self, source: Source, facts: Facts) -> Description:
        """Everything but the weights, of which at most positions are read. Each fact goes through `facts`. The
        name, and the score that the number of classes implies, may be left to the caller. Renames the tensors of
        `source` as in model/vit.py.

        Raises CheckpointError or ValueError, with the reason, for a file that cannot be loaded faithfully.
        """

    def tensors(self, state: State, description: Description) -> State:
        """The tensors, which `describe` has renamed, in the layers and shapes of model/vit.py. Positions may have the
        grid of the file.

        One that the family does not know keeps its name, so that loading fails with it.
        """


# The first that recognises a file loads it: jeonsworld's before transformers, whose names of patches it has, and timm's
# last, because Facebook's names are nearly the same.
FAMILIES: tuple[Family, ...] = (
    *(native, google, jeonsworld, huggingface, openclip),
    *(torchvision, lucidrains, facebook, timm),
)

# How most names of a family's tensors begin, to say which family an unknown file resembles.
LIKENESS = {
    "Google's vit_jax and big_vision": r".*/",
    "Hugging Face transformers": r"(\w+\.)?(embeddings|encoder\.layer|layernorm|pooler|classifier)\b",
    "torchvision": r"encoder\.(layers\.encoder_layer_|ln|pos_embedding)|conv_proj|heads\.",
    "vit-pytorch": r"transformer\.(layers|norm)|to_patch_embedding|mlp_head|pos_embedding|cls_token",
    "OpenAI's CLIP": r"(visual\.)?(transformer\.resblocks|conv1|ln_)",
    "timm": r"blocks\.|patch_embed\.|cls_token|pos_embed|norm\.|head\.",
}


def recognise(source: Source, overrides: Mapping[str, str]) -> Family:
    """The family of a checkpoint. Raises CheckpointError, with the family that it resembles, if there is none."""
    # What might be Facebook's is timm's too, which asks, unless the file or a person says whose it is.
    named = overrides.get("architecture", "")
    is_facebooks = named in facebook.MEMBERS if named else facebook.is_believed(source)
    families = [family for family in FAMILIES if family is not facebook or is_facebooks]
    family = next((family for family in families if family.recognises(source)), None)
    if family is None:
        raise CheckpointError(_unknown(source))
    if family is timm and "architecture" in source.config and "architecture" not in overrides:
        find(source.config["architecture"])  # before anything is said of its head
    return family


def _unknown(source: Source) -> str:
    """The family that the file resembles most, and the names of tensors that do not belong to that family."""
    keys = sorted(source.names)
    alike = {name: [key for key in keys if re.match(start, key)] for name, start in LIKENESS.items()}
    nearest = max(alike, key=lambda name: len(alike[name]))
    if not alike[nearest]:
        return f"{source.file.name} resembles no known family; its first tensors are {first_few(keys)}"
    others = [key for key in keys if key not in alike[nearest]] or keys
    return (
        f"{source.file.name} belongs to no known family. It is most like {nearest}, which does not have "
        f"{first_few(others)}"
    )
