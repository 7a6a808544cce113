"""Read, run and log the images of a request."""

import asyncio
import hashlib
import logging
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import Request
from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from app.api.form import read_form
from app.api.json_images import images_in
from app.api.parameters import Given, P, check_names, read
from app.api.results import BY_SETTINGS, Familiar
from app.api.services import Services
from app.classifier import Image, Outcome, Processed, Wanted
from app.errors import DeadlineExceeded, ServiceError, UnfamiliarImage, UnsupportedType
from app.images.upload import Upload
from app.inference.engine import NOTHING_ASKED, Asked
from app.telemetry.logs import access_log
from app.telemetry.request_state import RequestState

MAX_HASHED_ON_LOOP_BYTES = 2**18  # hashing a larger image would block the event loop for a millisecond or more


def _attention(value: object) -> object:
    try:
        return value if value == "now" else _BOOLEAN.validate_python(value)
    except ValidationError:
        raise PydanticCustomError("attention", "Input should be a valid boolean or now") from None


_BOOLEAN = TypeAdapter(bool)
Attention = Annotated[
    bool | Literal["now"],
    BeforeValidator(_attention),
    Field(
        description="Keep the image for GET /attention/{id}, which makes its maps when they are asked for; "
        "`now` makes them in the same forward pass"
    ),
]


@dataclass(frozen=True)
class ImageRequest:
    """A request that brings images, and the services that it needs."""

    request: Request
    services: Services

    async def read(self, kind: type[P], *, max_images: int, instead: str | None = None) -> tuple[list[Upload], P]:
        """Every image in the body, in order, and the parameters of the query with those of a form or JSON, which count
        as much. A query that is wrong is refused before the body is read. There is an image, or JSON or the query has
        the parameter `instead`.

        Raises MalformedRequest, InvalidParameter, RequestValidationError, UnsupportedType for a form that cannot carry
        images, DeadlineExceeded, Overloaded, and what the guard raises.
        """
        in_query = self.request.query_params.multi_items()
        parameters = read(kind, in_query)
        images, in_body = await self._body(kind.model_fields, max_images=max_images, instead=instead)
        if instead in dict(in_query):
            images = [image for image in images if len(image)]
        if in_body:
            given = [*in_query, *in_body]
            check_names([name for name, _ in given], kind.model_fields, self.request)
            parameters = read(kind, given)
        return images, parameters

    async def _body(
        self, parameters: Collection[str], *, max_images: int, instead: str | None
    ) -> tuple[list[Upload], Given]:
        """A body that is neither JSON nor a form is taken for the image itself. There is no limit on the bytes of one
        image, because its pixels are what it costs.
        """
        kind = self.request.headers.get("content-type", "").split(";")[0].strip().lower()
        if kind == "application/json":
            return images_in(await self.read_json(await self.received()), max_images=max_images, instead=instead)
        if kind.startswith("multipart/form-data"):
            return await read_form(self.request, parameters=parameters, max_images=max_images)
        if kind.startswith("multipart/"):
            raise UnsupportedType("Send the image itself as the body, or images as parts of multipart/form-data.")
        return [await self.received()], ()

    async def received(self) -> Upload:
        """The whole body. Raises what the guard raises."""
        upload = Upload()
        async for piece in self.request.stream():
            upload.add(piece)
        return upload

    async def read_json(self, upload: Upload) -> Any:
        """As `Preprocessor.read_json`. It is admitted as an image, because it waits for a decoder like one.

        Raises DeadlineExceeded, and what admission raises.
        """
        deadline = RequestState.of(self.request.scope).deadline
        try:
            with self.services.admission.admit(1, deadline=deadline):
                async with asyncio.timeout(deadline - time.monotonic()):
                    return await self.services.classifier.preprocessor.read_json(upload)
        except TimeoutError:
            raise DeadlineExceeded from None

    async def run(
        self,
        images: Sequence[Image],
        *,
        attention: Attention,
        drawn: bool = False,
        explain: Asked | None = None,
        tokens: str | None = None,
        familiar: Familiar = BY_SETTINGS,
        success: str,
    ) -> list[Outcome]:
        """Run the model on the images, in order.

        `attention` is the parameter of that name; maps can be drawn on images that are kept, or `drawn`. With `explain`
        the maps are made too, with evidence for what it asks, and with `tokens` each image has this array of them.
        `familiar` says which images are refused, and `success` counts the images that succeed in the metrics. Raises
        InvalidParameter if no image can be refused, and what admission raises.
        """
        services, state = self.services, RequestState.of(self.request.scope)
        wanted = Wanted(
            keep=attention is not False,
            drawn=drawn or attention is not False,
            explain=NOTHING_ASKED if attention == "now" else explain,
            tokens=tokens,
            least_familiarity=familiar.least(services.settings, services.bundle.manifest),
            deadline=state.deadline,
            stages=state.stages,
        )
        try:
            outcomes = await self._outcomes(images, wanted)
        except asyncio.CancelledError:
            if state.left:
                services.metrics.images.labels("abandoned").inc(len(images))
            raise
        for outcome in outcomes:
            services.metrics.images.labels(outcome.kind if isinstance(outcome, ServiceError) else success).inc()
            if isinstance(outcome, Processed | UnfamiliarImage) and outcome.familiarity is not None:
                services.metrics.familiarity.observe(outcome.familiarity)
            if isinstance(outcome, Processed) and services.scoring.labels:
                services.metrics.answered(*services.scoring.best(outcome.logits))
        if access_log.isEnabledFor(logging.INFO):
            pairs = zip(images, outcomes, strict=True)
            state.images = [await self._log_entry(image, outcome) for image, outcome in pairs]
        return outcomes

    async def _outcomes(self, images: Sequence[Image], wanted: Wanted) -> list[Outcome]:
        """Raises what admission raises."""
        process = partial(self.services.classifier.process, wanted=wanted)
        with self.services.admission.admit(len(images), deadline=wanted.deadline) as answered:
            if len(images) == 1:  # without a task of its own
                outcomes = [await process(*images)]
            else:
                outcomes = await asyncio.gather(*map(process, images))
            if any(isinstance(outcome, Processed | DeadlineExceeded) for outcome in outcomes):
                answered()  # images that never reach the model say nothing about the wait for it
        return outcomes

    async def _log_entry(self, image: Image, outcome: Outcome) -> dict[str, object]:
        """Enough to recognise an image, and nothing of its content."""
        size = len(image) if isinstance(image, Upload) else image.nbytes
        checksum = image.sha256 if isinstance(image, Upload) else lambda: hashlib.sha256(image.data).digest()
        if size <= MAX_HASHED_ON_LOOP_BYTES:
            digest = checksum()
        else:
            digest = await asyncio.to_thread(checksum)  # not behind drawings, which `cpu_pool` has queued
        known = {"sha256": digest.hex()[:16], "bytes": size}
        if isinstance(outcome, ServiceError):
            return {**known, "problem": outcome.kind}
        width, height = outcome.image.size
        return {**known, "width": width, "height": height, "format": outcome.image.format}
