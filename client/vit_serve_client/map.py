"""A map of an image, for notebooks: numbers as arrays, and pictures that the service draws."""

from collections.abc import Callable
from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from PIL.Image import Image


class Map:
    """`facts` are all that the service says of it, as JSON; a notebook shows it on the image."""

    def __init__(self, facts: dict[str, Any], *, draw: Callable[..., bytes]) -> None:
        """`draw` gives it as PNG, with parameters of GET /attention/{id}."""
        self.facts = facts
        self._draw = draw

    @property
    def values(self) -> "npt.NDArray[np.float64]":
        """A number for each patch (rows, columns), as the model has computed it: not scaled for drawing."""
        import numpy as np

        return np.array(self.facts["values"], float).reshape(self.facts["grid"])

    @property
    def crop_box(self) -> tuple[float, ...]:
        """Left, top, right and bottom of the patches together, in pixels of the upright image."""
        return tuple(self.facts["crop_box"])

    @property
    def receipt(self) -> dict[str, float] | None:
        """Numbers that add up to the logit, of a map of evidence."""
        return self.facts.get("receipt")

    def overlay(self, **parameters: Any) -> "Image":
        """The map on its image. `parameters` say how it is drawn, such as colormap="magma" or alpha=0.6."""
        return picture(self._draw(**parameters))

    def __repr__(self) -> str:
        named = [f"{name}={self.facts[name]!r}" for name in ("method", "label", "grid") if self.facts.get(name)]
        return f"Map({', '.join(named)})"

    def _repr_png_(self) -> bytes:
        return self._draw()


def picture(png: bytes) -> "Image":
    from PIL import Image

    return Image.open(BytesIO(png))
