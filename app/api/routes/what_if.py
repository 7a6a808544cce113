"""POST /attention/{id}/verify and /cover: what if some patches were not there? Is the map faithful? What changes?

Samek et al. 2017 (arXiv 1509.06321) and Petsiuk et al. 2018 (arXiv 1806.07421) cover patches to judge a map.
"""

import asyncio
from typing import Annotated, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from fastapi import Depends, Query, Request
from pydantic import BaseModel, Field

from app.api.parameters import ChoiceQuery, FillQuery, refuse_body
from app.api.results import ImageAnswer
from app.api.route import CheckedRouter
from app.api.services import Services, services_of
from app.errors import InvalidParameter, NoClasses
from app.http.problems import problems
from app.images.preprocess import PreprocessedImage
from app.inference.digits import digits
from app.inference.scoring import TOP_K, Prediction
from app.maps.attention import choose
from app.maps.attention_map import AttentionMap, Chosen
from app.maps.choice import Choice, check_choice
from app.maps.faithfulness import Faithfulness, FaithfulnessCurve, beside_random_sets, chance, share_as_large, top
from app.maps.labels import find_index
from app.maps.occlusion import Fill
from app.maps.record import Maps

router = CheckedRouter(tags=["maps"], dependencies=[Depends(refuse_body)])


class VerifyResponse(Chosen, ImageAnswer):
    """Whether a map finds the patches that a label's score depends on."""

    label: str  # whose score is followed
    index: int
    score: float  # of the untouched image
    fill: Fill
    steps: int
    random_orders: int
    deletion: FaithfulnessCurve
    insertion: FaithfulnessCurve
    chance: float  # that a random map beats all these random orders in both


@router.post("/attention/{id}/verify", summary="Measure how faithful a map is", responses=problems(400, 404, 409, 422))
async def verify(
    request: Request,
    id: str,
    choice: ChoiceQuery,
    fill: FillQuery = "mean",
    steps: Annotated[int, Query(ge=4, le=64, description="Points of each curve after the first")] = 8,
    random_orders: Annotated[int, Query(ge=1, le=32, description="Number of random orders to compare with")] = 16,
) -> VerifyResponse:
    """Petsiuk et al. 2018, RISE, arXiv 1806.07421.

    Deletion covers the image patch by patch, the most important patches of the map first, and follows the score of a
    class: `label`, by default the top one. Insertion uncovers the patches in the same order. A faithful map has a
    smaller deletion area and a larger insertion area than random orders; `chance` says how often a random map has both.
    The result holds for this image, class and fill only.
    """
    services = services_of(request)
    image, _, index, shown = await _followed(services, id, request, choice, "label")
    judged = await asyncio.to_thread(
        Faithfulness.of, shown.values, steps=steps, random_orders=random_orders, seed=bytes(image.pixels)
    )
    scores = await services.occluded(
        image, judged.covered, lambda logits: services.scoring.scores(logits)[index], request, fill=fill
    )
    deletion, insertion = judged.curves(np.array(scores))
    return VerifyResponse(
        **shown.chosen.model_dump(exclude={"label", "index"}),
        id=id,
        model=services.model_name,
        label=services.scoring.labels[index],
        index=index,
        score=deletion.scores[0],
        fill=fill,
        steps=len(deletion.fractions) - 1,
        random_orders=random_orders,
        deletion=deletion,
        insertion=insertion,
        chance=digits(chance(random_orders)),
    )


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


@router.post(
    "/attention/{id}/cover", summary="See what changes without some patches", responses=problems(400, 404, 409, 422)
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
    scoring, manifest = services.scoring, services.bundle.manifest
    image, maps, index, shown = await _followed(services, id, request, choice, "label", "against")
    covered = which.of(shown.values)
    evidence = choose(maps, manifest, Choice(method="evidence", label=choice.label, against=choice.against))
    sets = await asyncio.to_thread(beside_random_sets, covered, random_sets, seed=bytes(image.pixels))
    logits = np.stack(await services.occluded(image, sets, np.asarray, request, fill=fill))  # (images, classes)
    followed = logits[:, index].astype(np.float64)
    if choice.against is not None:
        followed -= logits[:, find_index(maps, manifest.labels, choice.against)]
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


class _Followed(NamedTuple):
    image: PreprocessedImage
    maps: Maps
    label: int  # whose answer is followed
    shown: AttentionMap  # the map that is put to the test


async def _followed(
    services: Services, id: str, request: Request, choice: Choice, *followed: Literal["label", "against"]
) -> _Followed:
    """What is kept of an image under an id, and the map of it, where these names say which answer is followed."""
    manifest = services.bundle.manifest
    if not manifest.labels:
        raise NoClasses
    kept = await services.kept(id, request)
    of_map = choice.without(*followed)
    check_choice(of_map, manifest)
    maps = await services.maps(id, kept, request, choice)
    label = find_index(maps, manifest.labels, choice.label)
    if of_map.method == "measured":
        shown = await services.measured(kept.image, of_map, kept.classes[0], request, id=id)
    else:
        shown = choose(maps, manifest, of_map)
    return _Followed(image=kept.image, maps=maps, label=label, shown=shown)
