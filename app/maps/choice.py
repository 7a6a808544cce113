"""Which map a client asks for: a method, a layer, a head, a label."""

from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from app.bundle import Manifest
from app.errors import InvalidParameter, NoClasses
from app.maps.attention_map import Method
from app.maps.labels import index_of
from app.maps.measured import LEAST_PASSES, MOST_PASSES, PASSES


class Choice(BaseModel):
    """Which map of an image a client asks for."""

    model_config = ConfigDict(frozen=True)

    method: Annotated[
        Method,
        Field(
            description="`class_token`: attention in one layer; `rollout`: attention through all layers; "
            "`evidence`: what each patch adds to the logit of a label; "
            "`positive_evidence`: the same without what it takes away in any layer, times rollout; "
            "`measured`: by how much each patch raises the log-odds of a label, or the cosine with `like`, from "
            "`passes` runs of the model. All but the last cost the same"
        ),
    ] = "class_token"
    layer: Annotated[
        str | None,
        Field(
            description="Layer index from 0 (negative counts from the end; `layer` of tokens counts from 1) or `mean`; "
            "for evidence also `sum`. Default: the last layer; for evidence, `sum`. No effect on rollout and measured"
        ),
    ] = None
    head: Annotated[str, Field(description="Head index, `mean`, `max` or `min`. Only class_token has single heads")] = (
        "mean"
    )
    label: Annotated[
        str | None,
        Field(
            description="For evidence and measured: any label (index or name). Default: the top label. For evidence "
            "also a phrase, if the bundle has a text tower"
        ),
    ] = None
    against: Annotated[
        str | None,
        Field(
            description="For evidence and measured: a second label, any other, to subtract. With `like`: the id of an "
            "image, `nothing`, or `mean` of the images that the bundle knows, which is the default where it knows some"
        ),
    ] = None
    like: Annotated[
        str | None,
        Field(
            description="For evidence and measured: the id of another image, in place of a label: what makes this one "
            "like it"
        ),
    ] = None
    passes: Annotated[
        int,
        Field(
            ge=LEAST_PASSES,
            le=MOST_PASSES,
            multiple_of=4,  # a mask and its complement under each fill
            description="For measured: runs of the model, of which the first ones are those of a smaller number",
        ),
    ] = PASSES

    @property
    def of_label(self) -> bool:
        """Whether the map is of one label. Attention is the same for every label."""
        return self.method in ("evidence", "positive_evidence", "measured")

    def without(self, *followed: Literal["label", "against"]) -> Self:
        """The choice of a map, where these name the logit that is followed: attention has no label."""
        return self if self.of_label else self.model_copy(update=dict.fromkeys(followed))


def refuse_like(choice: Choice) -> None:
    """Raises InvalidParameter where another image stands in place of a label."""
    if choice.like is not None:
        raise InvalidParameter("like is for GET /attention/{id} alone.")


def check_choice(choice: Choice, manifest: Manifest, *, of_phrase: bool = False) -> None:
    """Raises InvalidParameter and NoClasses for what no image of this model has. A label `of_phrase` is a text, for
    which the bundle needs none of its own.
    """
    head_named(choice.head, manifest.heads)
    if choice.like is not None:
        if not choice.of_label or choice.label is not None:
            raise InvalidParameter(
                "like needs method=evidence, positive_evidence or measured, and takes the place of label."
            )
    elif choice.of_label:
        if not (manifest.labels or of_phrase):
            raise NoClasses
    elif choice.label is not None or choice.against is not None:
        raise InvalidParameter(
            "label and against need method=evidence, positive_evidence or measured: attention is the same for every "
            "label."
        )
    if not (choice.of_label and choice.layer == "sum"):
        layer_named(choice.layer, manifest.layers)


def classes_for(choice: Choice, labels: tuple[str, ...], likely: Sequence[int]) -> tuple[int, ...]:
    """The classes to explain for a choice: the most `likely` ones, unless it names others. Those then stand behind as
    many of these as there is room for, so that a name leads to the same class here and in `find_class`.

    Raises InvalidParameter for a label that the model does not have.
    """
    if not labels:
        return ()
    top = likely[0] if choice.label is None else index_of(choice.label, labels, likely)
    named = [top] if choice.against is None else [top, index_of(choice.against, labels, likely)]
    others = sorted(set(named) - set(likely))
    if not others:
        return tuple(likely)
    return (*sorted(likely, key=lambda index: index not in named)[: len(likely) - len(others)], *others)


def layer_named(text: str | None, layers: int) -> int | Literal["mean"]:
    named: dict[str | None, int | Literal["mean"]] = {str(i): i % layers for i in range(-layers, layers)}
    named |= {None: layers - 1, "mean": "mean"}
    if text not in named:
        raise InvalidParameter(f"layer must be 0 to {layers - 1}, a negative index from the end, or mean.")
    return named[text]


def head_named(text: str, heads: int) -> int | Literal["mean", "max", "min"]:
    named: dict[str, int | Literal["mean", "max", "min"]] = {str(i): i for i in range(heads)}
    named |= {"mean": "mean", "max": "max", "min": "min"}
    if text not in named:
        raise InvalidParameter(f"head must be 0 to {heads - 1}, mean, max or min.")
    return named[text]
