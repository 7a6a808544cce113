"""Measured maps: runs an image under masks, keeps what the model answers, and fits a map to it."""

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple, get_args

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
        of: int | Vectors,
        *,
        id: str | None = None,
        deadline: float = math.inf,
    ) -> AttentionMap:
        """The measured map of an image (height, width, 3): of a label, by default the one given, or of a direction
        (1, features), which is that of one embedding less that of another. Passes that are kept under `id` are not run
        again, for whichever label or direction they were asked.

        `deadline` is in seconds of time.monotonic. Raises InvalidParameter for a label that the model does not have
        and for `like` without a direction, StoreUnavailable, and what Occlusion raises.
        """
        followed = self._of_direction(choice, of) if isinstance(of, np.ndarray) else self._of_label(choice, of)
        masks = Masks.of(self.manifest.tokens.grid, choice.passes)
        numbers = followed.read(await self._answers(followed.output, pixels, masks, id, deadline))
        measured = await asyncio.to_thread(measure, numbers, masks)
        recipe = (
            f"by how much each patch raises the {followed.says}, fitted to {choice.passes} runs of the model in which "
            "parts of the image are covered with its mean colour or a blur"
        )
        of_what = {"method": "measured", "layer": "all", "head": "sum", "passes": choice.passes, **followed.named}
        return AttentionMap(
            chosen=Chosen(recipe=recipe, **of_what),
            values=measured.values,
            siblings=measured.values,
            masses=dict.fromkeys(get_args(Prefix), 0.0),
            spread=measured.spread,
        )

    def _of_label(self, choice: Choice, top: int) -> "_Followed":
        refuse_like(choice)
        labels = self.manifest.labels
        index, against = (
            default if text is None else index_of(text, labels, [top])
            for text, default in ((choice.label, top), (choice.against, None))
        )
        assert index is not None
        label, other = labels[index], None if against is None else labels[against]
        return _Followed(
            output="logits",
            read=lambda logits: log_odds(logits, self.scoring, index, against),
            says=f"log-odds of {label}" if other is None else f"logit of {label} above that of {other}",
            named={"label": label, "index": index, "against": other},
        )

    def _of_direction(self, choice: Choice, direction: Vectors) -> "_Followed":
        return _Followed(
            output="embedding",
            read=lambda embeddings: unit(embeddings.astype(np.float64)) @ direction[0],
            says=f"cosine similarity with {said(choice)}",
            named={"like": choice.like, "against": choice.against},
        )

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


class _Followed(NamedTuple):
    """What a map is of."""

    output: str  # of the lean graph
    read: Callable[[npt.NDArray[np.float32]], npt.NDArray[np.floating]]  # a number for each pass, from that output
    says: str
    named: dict[str, Any]  # of `Chosen`
