"""The known answer of a bundle: one image for which every session has to give PyTorch's numbers.

A session can compute wrong numbers that are finite: a damaged weight, a kernel at fault, a recorded run that reads old
buffers. Nothing else would notice, so the engine runs this image at warm-up, before it uses a batch size for the first
time, and when it tests itself.

Of maps over tokens or heads, and of tokens over features, the manifest has weighted sums. The weights are irregular: a
plain sum of attention is 1 whatever it says, and with weights that rise evenly, a map that is blurred or mirrored may
have the same sum.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from app.bundle import Graph, KnownAnswer, is_array
from app.inference.engine import DIRECTION, MOST_LIKELY_CLASS, Asked, DeviceError, Outputs, Pixels

GOLDEN_RATIO = (5**0.5 - 1) / 2
BY_CLASS = ("evidence", "evidence_heads", "evidence_rest", "lens")
# As they are, or in sums over the last axis: tokens, of evidence_heads heads, and features of the arrays of tokens.
WHOLE = ("embedding", "unlike", "distance", "lens", "evidence_rest")

Numbers = npt.NDArray[np.float64]


class WrongAnswer(DeviceError):
    """The engine computes other numbers than PyTorch did; the message says which."""


class KnownImage:
    """The image of a known answer in the size of the network's input, and what outputs for it have to be.

    In shapes: B batch, C classes, K most likely classes, L layers.
    """

    def __init__(self, answer: KnownAnswer, size: tuple[int, int]) -> None:
        """`size` is the height and width of the network's input."""
        self._answer = answer
        self._image = enlarged(np.frombuffer(answer.pixels, np.uint8).reshape(*answer.size, 3), size)
        self._logits = np.array(answer.logits)
        self._classes = np.array(answer.classes)
        self._sums = {name: np.array(numbers) for name, numbers in answer.sums.items()}
        self._asked = Asked(
            [
                index if place % 2 or index == DIRECTION else MOST_LIKELY_CLASS
                for place, index in enumerate(answer.classes)
            ],
            known_directions(answer.classes, features=len(self._sums["embedding"])),
        )
        self.largest: dict[Graph, float] = {}  # difference that was found so far, as a share of what is allowed

    def inputs(self, count: int) -> tuple[Pixels, list[Asked]]:
        """`count` times the image, uint8 (count, height, width, 3), and what to explain: every other class is left to
        the graph, and one place may have a direction.
        """
        return np.repeat(self._image[np.newaxis], count, axis=0), [self._asked] * count

    def check(self, graph: Graph, outputs: Outputs, *, provider: str) -> None:
        """Raises WrongAnswer if a row of `outputs` is not within the tolerance. `provider` is named in the message."""
        for name, rows in self.differences(outputs).items():
            allowed = getattr(self._answer.tolerance, name)
            if not (rows <= allowed).all():  # so that NaN is wrong too
                row = int((~(rows <= allowed)).argmax())
                raise WrongAnswer(
                    f"The model computes wrong numbers on {provider}: for the bundle's known image, {name} of the "
                    f"{graph} graph differs from PyTorch by {rows[row]:.1e}, and {allowed:.1e} is allowed "
                    f"(image {row + 1} of a batch of {len(rows)})"
                )
            self.largest[graph] = max(self.largest.get(graph, 0.0), float(rows.max()) / allowed)

    def differences(self, outputs: Outputs) -> dict[str, Numbers]:
        """The largest difference of each quantity in each row, (B,), in the units of the tolerance."""
        classes = outputs.get("classes")
        with np.errstate(invalid="ignore"):  # infinity less infinity; NaN is found by `check`
            apart = {name: self._apart(name, array, classes) for name, array in sums(outputs).items()}
        apart["embedding"] /= np.abs(self._sums["embedding"]).max()
        if "unlike" in apart:
            apart["unlike"] /= max(1, np.abs(self._sums["unlike"]).max())  # it may be about 0
        arrays = [apart.pop(name) / np.abs(self._sums[name]).max() for name in outputs if is_array(name)]
        if arrays:
            apart["tokens"] = np.max(arrays, axis=0)
        if "evidence" in outputs:
            largest_part = np.abs([*self._logits, *self._sums["evidence_rest"].ravel()]).max()
            apart["evidence"] = np.max([apart.pop(name) for name in BY_CLASS if name != "lens"], axis=0) / largest_part
        if "logits" not in outputs:
            return apart
        largest_logit = np.abs(self._logits).max()
        logits = np.abs(outputs["logits"] - self._logits).max(axis=1)
        if classes is not None:
            logits = np.maximum(logits, self._misplaced(classes))
        return {"logits": logits / largest_logit, **apart}

    def _misplaced(self, classes: npt.NDArray[np.int64]) -> Numbers:
        """Half of the largest difference between the logit of a named class, and of the class that belongs there, (B,).

        Two classes may change places only if both of their logits may have been off by that much.
        """
        of_class = self._classes != DIRECTION
        named, expected = classes[:, of_class], self._classes[of_class]
        known = (named >= 0) & (named < len(self._logits))
        logits = np.where(known, self._logits.take(named, mode="clip"), np.inf)
        apart: Numbers = np.abs(logits - self._logits[expected]).max(axis=1, initial=0) / 2
        return apart

    def _apart(self, name: str, numbers: Numbers, classes: npt.NDArray[np.int64] | None) -> Numbers:
        """The largest difference in each row of `numbers`, (B,). Where they are (B, K, ...) for the K `classes` (B, K),
        each is compared with the same class of the answer; one that the answer does not have is not compared.
        """
        known = self._sums[name].reshape(numbers.shape[1:])
        if classes is not None and name in BY_CLASS:
            same = classes[:, :, np.newaxis] == self._classes  # (B, K, K)
            apart: Numbers = np.abs(numbers - known[same.argmax(axis=2)])
            apart[~same.any(axis=2)[:, :, np.newaxis] & np.isfinite(apart)] = 0
        else:
            apart = np.abs(numbers - known)
        worst: Numbers = apart.reshape(len(apart), -1).max(axis=1)
        return worst


def known_directions(classes: Sequence[int], *, features: int) -> npt.NDArray[np.float32]:
    """The directions that are asked for the known image, (K, features): one, in the place of DIRECTION."""
    directions = np.zeros((len(classes), features), np.float32)
    directions[np.array(classes, int) == DIRECTION] = _weights(features) - 0.5
    return directions


def enlarged(image: Pixels, size: tuple[int, int]) -> Pixels:
    """Each pixel of the result is the one at its place in `image`. Needs no library whose next version might differ."""
    rows, columns = (np.arange(to) * have // to for to, have in zip(size, image.shape[:2], strict=True))
    return np.ascontiguousarray(image[rows][:, columns])


def sums(outputs: Outputs) -> dict[str, Numbers]:
    """What is compared of each output other than logits and classes.

    The batch comes first; where there is a number for each class, the classes come next.
    """
    others = {name: array.astype(np.float64) for name, array in outputs.items() if name not in ("logits", "classes")}
    if "lens" in others:
        others["lens"] = others["lens"].swapaxes(1, 2)  # (B, L, K)
    return {name: array if name in WHOLE else array @ _weights(array.shape[-1]) for name, array in others.items()}


def _weights(count: int) -> Numbers:
    """Between 0 and 1, no two of them alike and neighbours far apart (multiples of the golden ratio, less integers)."""
    weights: Numbers = np.arange(1, count + 1, dtype=np.float64) * GOLDEN_RATIO % 1
    return weights
