"""What timm's architecture names stand for, from timm_architectures.json.

lab/golden/make_timm_architectures.py writes the JSON from timm's entry points: the arguments that each of them gives
to its class, where they differ from the defaults of the class, and the published tags. The classes are timm's
`VisionTransformer` (models/vision_transformer.py), `VisionTransformerDistilled` (deit.py), `VisionTransformerRelPos`
(vision_transformer_relpos.py), `Beit` (beit.py) and `Eva` (eva.py); an argument that is a layer is there by its name.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.source import Source
from model.config import PositionResize

TABLE = Path(__file__).with_name("timm_architectures.json")


class Architecture(NamedTuple):
    name: str
    model_class: str
    arguments: dict[str, Any]  # every argument of the class
    position_resize: PositionResize
    tags: dict[str, tuple[int, dict[str, Any]]]  # outputs of the published head, and its preprocessing

    def published(self, tag: str | None, outputs: int) -> dict[str, dict[str, Any]]:
        """Preprocessing by tag: of `tag` alone, else of the tags with so many outputs, else of all tags."""
        alike = [name for name, (heads, _) in self.tags.items() if heads == outputs]
        names = [tag] if tag in self.tags else alike or [*self.tags]
        return {f"{self.name}.{name}": self.tags[name][1] for name in names}


@cache
def table() -> dict[str, Any]:
    return json.loads(TABLE.read_text())


def named_in(source: Source) -> str:
    """What a script calls the network of a file, if that is one name of timm; else empty."""
    known = table()["aliases"].keys() | table()["architectures"].keys()
    names = {name for name in source.architectures if name in known or name.partition(".")[0] in known}
    return names.pop() if len(names) == 1 else ""


def find(name: str) -> tuple[Architecture, str | None]:
    """Architecture and tag of a name such as `vit_base_patch16_224` or `vit_base_patch16_224.augreg_in21k`.

    Raises CheckpointError for a name that is not in the table.
    """
    known = table()
    name, _, tag = known["aliases"].get(name, name).partition(".")
    if name not in known["architectures"]:
        raise CheckpointError(
            f"architecture {name} is none of the {len(known['architectures'])} plain Vision Transformers of timm "
            f"{known['timm']}"
        )
    entry = dict(known["architectures"][name])
    model_class, position_resize = entry.pop("class"), entry.pop("position_resize", "bicubic_antialias")
    tags = {tag: (outputs, known["recipes"][recipe]) for tag, (outputs, recipe) in entry.pop("tags").items()}
    arguments = {**known["classes"][model_class], **entry}
    return Architecture(name, model_class, arguments, position_resize, tags), tag or None
