"""Measured maps: runs an image under masks, keeps what the model answers, and fits a map to it."""

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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

    async def maps(
        self,
        pixels: npt.NDArray[np.uint8],
        choice: Choice,
        of: Sequence[int | Vectors],
        *,
        id: str | None = None,
        deadline: float = math.inf,
    ) -> list[AttentionMap]:
        """Measured maps of an image (height, width, 3) from the same passes, one `of` each label or direction. A label
        in the choice takes the place of such an index. A direction (1, features) is one embedding less another. Passes
        that are kept under `id` are not run again, for whichever label or direction they were asked.

        `deadline` is in seconds of time.monotonic. Raises InvalidParameter for a label that the model does not have
        and for `like` without a direction, StoreUnavailable, and what Occlusion raises.
        """
        followed = [
            self._of_direction(choice, one) if isinstance(one, np.ndarray) else self._of_label(choice, one)
            for one in of
        ]
        masks = Masks.of(self.manifest.tokens.grid, choice.passes)
        answers = await self._answers({one.output for one in followed}, pixels, masks, id, deadline)
        return [await asyncio.to_thread(self._fit, one, answers[one.output], masks, choice) for one in followed]

    def _fit(
        self, followed: "_Followed", answers: npt.NDArray[np.float32], masks: Masks, choice: Choice
    ) -> AttentionMap:
        measured = measure(followed.read(answers), masks)
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
        self, outputs: set[str], pixels: npt.NDArray[np.uint8], masks: Masks, id: str | None, deadline: float
    ) -> dict[str, npt.NDArray[np.float32]]:
        """(passes, ...) of each of some outputs of the lean graph, for the image under each mask."""
        known = {output: np.zeros((0, *self.manifest.explains[output]), np.float32) for output in outputs}
        if self.explainer and id:
            kept = {output: await self.explainer.passes(id, output) for output in outputs}
            known |= {output: answers for output, answers in kept.items() if answers is not None}
        first, passes = min(map(len, known.values())), len(masks.fills)
        if first < passes:
            covered, fills = masks.covered[first:], masks.fills[first:]
            more = await self.occlusion.run(
                pixels, covered, lambda answer: {name: answer[name] for name in outputs}, fills=fills, deadline=deadline
            )
            for output in outputs:
                under_masks = np.stack([one[output] for one in more]).astype(np.float32)
                known[output] = np.concatenate([known[output][:first], under_masks])
                if self.explainer and id:
                    await self.explainer.keep_passes(id, output, known[output])
        return {output: answers[:passes] for output, answers in known.items()}


class _Followed(NamedTuple):
    """What a map is of."""

    output: str  # of the lean graph
    read: Callable[[npt.NDArray[np.float32]], npt.NDArray[np.floating]]  # a number for each pass, from that output
    says: str
    named: dict[str, Any]  # of `Chosen`
