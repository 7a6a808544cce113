"""Measured maps: runs an image under masks, keeps what the model answers, and fits a map to it."""

import asyncio
import math
from dataclasses import dataclass
from typing import get_args

import numpy as np
import numpy.typing as npt

from app.bundle import Manifest, Prefix
from app.inference.scoring import Scoring
from app.maps.attention_map import AttentionMap, Chosen
from app.maps.choice import Choice
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

        `deadline` is in seconds of time.monotonic. Raises InvalidParameter for a label that the model does not have,
        StoreUnavailable, and what Occlusion raises.
        """
        index, against = (
            default if text is None else index_of(text, self.manifest.labels, [top])
            for text, default in ((choice.label, top), (choice.against, None))
        )
        assert index is not None
        masks = Masks.of(self.manifest.tokens.grid, choice.passes)
        logits = await self._logits(pixels, masks, id, deadline)
        followed = log_odds(logits, self.scoring, index, against)
        measured = await asyncio.to_thread(measure, followed, masks)
        return AttentionMap(
            chosen=self._chosen(choice, index, against),
            values=measured.values,
            siblings=measured.values,
            masses=dict.fromkeys(get_args(Prefix), 0.0),
            spread=measured.spread,
        )

    async def _logits(
        self, pixels: npt.NDArray[np.uint8], masks: Masks, id: str | None, deadline: float
    ) -> npt.NDArray[np.float32]:
        """(passes, classes) of the image under each mask."""
        known = np.zeros((0, len(self.manifest.labels)), np.float32)
        if self.explainer and id and (kept := await self.explainer.passes(id)) is not None:
            known = kept
        first, passes = len(known), len(masks.fills)
        if first < passes:
            covered, fills = masks.covered[first:], masks.fills[first:]
            more = await self.occlusion.run(pixels, covered, np.asarray, fills=fills, deadline=deadline)
            known = np.concatenate([known, np.stack(more).astype(np.float32)])
            if self.explainer and id:
                await self.explainer.keep_passes(id, known)
        return known[:passes]

    def _chosen(self, choice: Choice, index: int, against: int | None) -> Chosen:
        label = self.manifest.labels[index]
        other = None if against is None else self.manifest.labels[against]
        followed = f"log-odds of {label}" if other is None else f"logit of {label} above that of {other}"
        recipe = (
            f"by how much each patch raises the {followed}, fitted to {choice.passes} runs of the model in which parts "
            "of the image are covered with its mean colour or a blur"
        )
        return Chosen(
            method="measured",
            layer="all",
            head="sum",
            label=label,
            index=index,
            against=other,
            passes=choice.passes,
            recipe=recipe,
        )
