"""Measured maps: runs an image under masks, keeps what the model answers, and fits a map to it."""

import asyncio
import math
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from app.bundle import Manifest, Prefix
from app.inference.scoring import Scoring
from app.inference.unit import unit
from app.maps.attention_map import AttentionMap, Chosen
from app.maps.choice import Choice, refuse_like
from app.maps.direction import Vectors, said
from app.maps.explainer import Explainer
from app.maps.labels import index_of
from app.maps.measured import Masks, log_odds, measure
from app.maps.occlusion import Occlusion


@dataclass(frozen=True, kw_only=True)
class Measurement:
    occlusion: Occlusion
    manifest: Manifest
    scoring: Scoring
    explainer: Explainer | None = None  # keeps the answers

    async def map(
        self,
        pixels: npt.NDArray[np.uint8],
        choice: Choice,
        top: int,
        *,
        id: str | None = None,
        deadline: float = math.inf,
    ) -> AttentionMap:
        """The measured map of an image (height, width, 3), by default for the label `top`. Passes that are kept under
        `id` are not run again, for whichever label they were asked.

        `deadline` is in seconds of time.monotonic. Raises InvalidParameter for a label that the model does not have
        and for `like`, StoreUnavailable, and what Occlusion raises.
        """
        refuse_like(choice)
        labels = self.manifest.labels
        index, against = (
            default if text is None else index_of(text, labels, [top])
            for text, default in ((choice.label, top), (choice.against, None))
        )
        assert index is not None
        label, other = labels[index], None if against is None else labels[against]
        masks = Masks.of(self.manifest.tokens.grid, choice.passes)
        logits = await self._answers("logits", pixels, masks, id, deadline)
        numbers = log_odds(logits, self.scoring, index, against)
        followed = f"log-odds of {label}" if other is None else f"logit of {label} above that of {other}"
        return await self._fitted(numbers, masks, followed, label=label, index=index, against=other)

    async def similarity(
        self,
        pixels: npt.NDArray[np.uint8],
        choice: Choice,
        direction: Vectors,
        *,
        id: str | None = None,
        deadline: float = math.inf,
    ) -> AttentionMap:
        """The same of what this image's embedding has of a unit `direction` (1, features): of the cosine with another
        image's, or of that less the cosine with a third. Raises StoreUnavailable, and what Occlusion raises.
        """
        masks = Masks.of(self.manifest.tokens.grid, choice.passes)
        embeddings = await self._answers("embedding", pixels, masks, id, deadline)
        numbers = unit(embeddings.astype(np.float64)) @ direction[0]
        of = {"like": choice.like, "against": choice.against}
        return await self._fitted(numbers, masks, f"cosine similarity with {said(choice)}", **of)

    async def _answers(
        self, output: str, pixels: npt.NDArray[np.uint8], masks: Masks, id: str | None, deadline: float
    ) -> npt.NDArray[np.float32]:
        """(passes, ...): an output of the lean graph for the image under each mask."""
        known = np.zeros((0, *self.manifest.explains[output]), np.float32)
        if self.explainer and id and (kept := await self.explainer.passes(id, output)) is not None:
            known = kept
        first, passes = len(known), len(masks.fills)
        if first < passes:
            covered, fills = masks.covered[first:], masks.fills[first:]
            more = await self.occlusion.run(pixels, covered, itemgetter(output), fills=fills, deadline=deadline)
            known = np.concatenate([known, np.stack(more).astype(np.float32)])
            if self.explainer and id:
                await self.explainer.keep_passes(id, output, known)
        return known[:passes]

    async def _fitted(self, numbers: npt.NDArray[np.floating], masks: Masks, followed: str, **of: Any) -> AttentionMap:
        """The map of `numbers` (passes,), which are those of what was `followed`."""
        measured = await asyncio.to_thread(measure, numbers, masks)
        recipe = (
            f"by how much each patch raises the {followed}, fitted to {len(numbers)} runs of the model in which parts "
            "of the image are covered with its mean colour or a blur"
        )
        return AttentionMap(
            chosen=Chosen(method="measured", layer="all", head="sum", passes=len(numbers), recipe=recipe, **of),
            values=measured.values,
            siblings=measured.values,
            masses=dict.fromkeys(get_args(Prefix), 0.0),
            spread=measured.spread,
        )
