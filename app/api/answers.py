"""The pieces of which answers in JSON are made."""

from typing import Annotated

from pydantic import BaseModel, Field
from pydantic.json_schema import SkipJsonSchema

from app.door.problems import Problem

MapsId = Annotated[str | SkipJsonSchema[None], Field(examples=["rfQjy4XodVjlp0sAFHEF_w"])]
MapsPath = Annotated[str | SkipJsonSchema[None], Field(examples=["/attention/rfQjy4XodVjlp0sAFHEF_w"])]


FamiliarityShare = Annotated[
    float | SkipJsonSchema[None],
    Field(examples=[0.43], description="the share of held-out images that are less familiar to the model"),
]


class ModelName(BaseModel):
    name: str = Field(examples=["shapes"])
    digest: str = Field(examples=["656ccfb2c4873f11"])  # sha256 of the bundle's manifest


class ImageAnswer(BaseModel):
    """What every answer about one classified image begins with."""

    id: str
    model: ModelName


class ImageInfo(BaseModel):
    """The upright image as decoded, and the name of its file in a form."""

    width: int = Field(examples=[384])
    height: int = Field(examples=[384])
    format: str = Field(examples=["JPEG"])
    file: Annotated[str | SkipJsonSchema[None], Field(examples=["star.jpg"])] = None


class FailedResult(BaseModel):
    """Takes the place of an image that could not be used."""

    error: Problem
