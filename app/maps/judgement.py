"""Which map was found the most faithful on a person's own images: the table that `export judge` puts beside a model.

It lies in the bundle's folder and not among its `files`: the digest names what computes the answers, and a table of
measurements computes none. The table says itself which model it is of.
"""

import logging
from typing import Annotated

from annotated_types import Ge, Len
from pydantic import FiniteFloat, ValidationError

from app.bundle import Bundle, Frozen, Sha256
from app.maps.occlusion import Fill

log = logging.getLogger(__name__)

FILE = "judged.json"
FILLS: tuple[Fill, ...] = ("mean", "blur")
RANDOM = "random"  # the method of maps that know nothing

Share = Annotated[float, Ge(0)]


class OnObject(Frozen):
    """Shares, in the mean over the images of which the object is known, in the part that the network sees."""

    images: int
    hottest: Share  # of images whose hottest patch is on the object
    five_hottest: Share  # of the five hottest patches, those on the object
    found: Share  # of images that have one of the five hottest patches on the object


class JudgedMap(Frozen):
    """One map, in the mean over the images. Areas are mean scores of the answer, by fill: app/maps/faithfulness.py."""

    title: str
    method: str  # as a request names it, or RANDOM
    layer: str | None = None  # likewise; None: the default of the method
    passes: Annotated[int, Ge(0)]  # through the network, beside the one that makes all others
    deletion: dict[Fill, FiniteFloat]
    insertion: dict[Fill, FiniteFloat]
    faithfulness: FiniteFloat  # insertion less deletion, in the sum of all fills
    behind: FiniteFloat  # the most faithful map, in the mean over the differences of each image
    error: FiniteFloat  # the standard error of that mean; 0 of the most faithful map
    on_object: OnObject | None = None


class Begin(Frozen):
    method: str
    layer: str | None


class Judgement(Frozen):
    digest: Sha256  # of the model
    says: str  # which map to believe, in a sentence
    begin: Begin | None  # the most faithful of the maps that take no passes; None: none is surely better than random
    images: Annotated[int, Ge(2)]
    steps: int  # of deletion and insertion
    maps: Annotated[tuple[JudgedMap, ...], Len(2)]  # the most faithful first


def read_judgement(bundle: Bundle) -> Judgement | None:
    """What is known of the maps of this model. A table that is damaged or of another model is left out, which the log
    says: the model answers without it.
    """
    path = bundle.folder / FILE
    try:
        found = Judgement.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        log.warning("%s cannot be read: %s", path, type(error).__name__)
        return None
    if found.digest != bundle.digest:
        log.warning("%s is of another model, and is left out", path)
        return None
    return found
