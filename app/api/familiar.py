"""Which images a request has refused, because they are unlike those that the model knows."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from app.api.parameters import refused
from app.bundle import Manifest
from app.inference.familiarity import NO_IMAGES
from app.settings import Settings


class Familiar(BaseModel):
    """Parameters of paths that tell familiarity."""

    unfamiliar: Annotated[
        Literal["answer", "refuse"] | None,
        Field(description="`refuse` an image below the least familiarity, with 422; the server's settings by default"),
    ] = None
    least_familiarity: Annotated[
        float | None,
        Field(ge=0, le=1, allow_inf_nan=False, description="Least familiarity; given alone, it refuses too"),
    ] = None

    def least(self, settings: Settings, manifest: Manifest) -> float:
        """The familiarity below which an image is refused; 0 refuses none.

        Raises InvalidParameter if the request refuses some and the bundle does not know its images.
        """
        if (self.unfamiliar or (settings.unfamiliar if self.least_familiarity is None else "refuse")) == "answer":
            return 0.0
        if not manifest.familiarity:
            name = "least_familiarity" if self.unfamiliar is None else "unfamiliar"
            raise refused(name, f"{name} has no meaning here: {NO_IMAGES}")
        return settings.least_familiarity if self.least_familiarity is None else self.least_familiarity


BY_SETTINGS = Familiar()
