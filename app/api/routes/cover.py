"""POST /attention/{id}/cover: what if these patches were not there?"""

from functools import partial
from typing import Annotated

import numpy as np
import numpy.typing as npt
from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, Field

from app.api.disconnect import cancel_on_disconnect
from app.api.parameters import ChoiceQuery, FillQuery, refuse_body
from app.api.results import ImageAnswer
from app.api.route import CheckedRoute
from app.api.services import services_of
from app.door.problems import problems
from app.errors import InvalidParameter, NoClasses
from app.inference.scoring import TOP_K, Prediction, digits
from app.maps.choice import Choice, Chosen, check_choice, choose
from app.maps.covering import Fill
from app.maps.labels import find_index
from app.maps.what_if import WhatIf, share_as_large, top
from app.telemetry.request_state import RequestState


class Which(BaseModel):
    """Which patches to cover."""

    patches: Annotated[
        str | None,
        Field(
            pattern="^[0-9]{1,6}(,[0-9]{1,6})*$",
            description="Numbers of patches, row by row from 0, with commas between: `27,28,35,36`",
        ),
    ] = None
    share: Annotated[
        float | None,
        Field(gt=0, lt=1, description="In place of `patches`: the share of them where the chosen map is highest"),
    ] = None
    rest: Annotated[bool, Field(description="Cover all patches but these")] = False

    def of(self, values: npt.NDArray[np.float32]) -> npt.NDArray[np.bool_]:
        """(patches,) of the chosen map (rows, columns). Raises InvalidParameter."""
        if (self.patches is None) == (self.share is None):
            raise InvalidParameter("Give either patches or share.")
        these = np.zeros(values.size, bool)
        if self.patches is not None:
            numbers = [int(number) for number in self.patches.split(",")]
            if max(numbers) >= values.size:
                raise InvalidParameter(f"patches must be numbers from 0 to {values.size - 1}.")
            these[numbers] = True
        if self.share is not None:
            these = top(values, self.share)
        return ~these if self.rest else these


class Answered(BaseModel):
    """What the model answers to the image, or to what is left of it."""

    logit: float  # of the label, or how far it is above that of `against`
    score: float  # of the label
    predictions: list[Prediction]  # most likely first


class CoverResponse(ImageAnswer):
    """What covering some patches changes, beside what their evidence says and what random patches change."""

    label: str  # whose logit is followed
    index: int
    against: str | None  # the label whose logit is subtracted
    map: Chosen | None  # the one that `share` is of
    grid: tuple[int, int]  # rows, columns
    patches: list[int]  # that are covered, row by row from 0
    fill: Fill
    before: Answered
    after: Answered
    evidence: float  # of the covered patches over all layers: what they add to the logit directly
    effect: float  # by how much the logit is really lower without them
    random_sets: int
    random_effects: list[float]  # the effect of each random set
    random_effect: float  # mean of random_effects
    share_of_random_sets_as_large: float  # of those that change the logit at least as much, up or down


router = APIRouter(tags=["maps"], route_class=CheckedRoute)


@router.post(
    "/attention/{id}/cover",
    summary="See what changes without some patches",
    dependencies=[Depends(refuse_body)],
    responses=problems(400, 404, 409, 422),
)
async def cover(
    request: Request,
    id: str,
    choice: ChoiceQuery,
    which: Annotated[Which, Query()],
    fill: FillQuery = "mean",
    random_sets: Annotated[int, Query(ge=1, le=200, description="Number of random sets to compare with")] = 20,
) -> CoverResponse:
    """Cover patches, given by number or as the top of a map, and run the model on what is left.

    `evidence` is the direct effect of these patches on the logit of `label`, by default the top one; `effect` is the
    real one. A covered image is not a natural one, so the result holds for this image, label and fill only.
    """
    services = services_of(request)
    manifest = services.bundle.manifest
    if not manifest.labels:
        raise NoClasses
    kept = await services.kept(id, request)
    check_choice(choice.without("label", "against"), manifest)
    maps = await services.maps(id, kept, request, choice)
    shown = choose(maps, manifest, choice.without("label", "against"))
    covered = which.of(shown.values)
    evidence = choose(maps, manifest, Choice(method="evidence", label=choice.label, against=choice.against))
    running = services.coverer.run(
        kept.image.pixels,
        partial(WhatIf.of, covered, random_sets=random_sets, seed=bytes(kept.image.pixels)),
        np.asarray,
        fill=fill,
        deadline=RequestState.of(request.scope).deadline,
    )
    _, answers = await cancel_on_disconnect(request, running)
    index = find_index(maps, manifest.labels, choice.label)
    logits = np.stack(answers)  # (images, classes)
    followed = logits[:, index].astype(np.float64)
    if choice.against is not None:
        followed -= logits[:, find_index(maps, manifest.labels, choice.against)]
    scoring = services.scoring
    effects = followed[0] - followed[1:]  # of the patches, then of each random set
    before, after = (
        Answered(logit=logit, score=digits(scoring.scores(row)[index]), predictions=scoring.rank(row, top_k=TOP_K))
        for logit, row in zip(followed[:2], logits[:2], strict=True)
    )
    return CoverResponse(
        id=id,
        model=services.model_name,
        label=manifest.labels[index],
        index=index,
        against=evidence.chosen.against,
        map=None if which.share is None else shown.chosen,
        grid=manifest.tokens.grid,
        patches=np.flatnonzero(covered).tolist(),
        fill=fill,
        before=before,
        after=after,
        evidence=float(evidence.values.ravel()[covered].sum(dtype=np.float64)),
        effect=float(effects[0]),
        random_sets=random_sets,
        random_effects=effects[1:].tolist(),
        random_effect=float(effects[1:].mean()),
        share_of_random_sets_as_large=share_as_large(effects[0], effects[1:]),
    )
