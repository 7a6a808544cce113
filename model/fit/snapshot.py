"""The state of a run in a file that survives a kill and a full disk."""

import hashlib
import pickle
import time
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from model.durable import replacing
from model.fit.samples import Samples
from model.preprocessing import Preprocessing

EVERY_S = 30.0  # what a kill costs at most, and the time of writing large weights stays a small share
SAMPLED = 256  # images that are read to tell samples from others


class Snapshot:
    """One file, replaced as a whole; none without a folder. `identity` says by name which run it belongs to."""

    def __init__(self, folder: Path | None, title: str, *, identity: dict[str, Any]) -> None:
        self.path = None if folder is None else folder / f"{title}.pt"
        self.title, self.identity = title, identity
        self._written = time.monotonic()

    def load(self) -> dict[str, Any] | None:
        """The last saved state, or None. Raises ValueError if it is of another run, or cannot be read."""
        if self.path is None or not self.path.exists():
            return None
        try:
            stored: dict[str, Any] = torch.load(self.path, map_location="cpu", weights_only=True)
        except (RuntimeError, EOFError, pickle.UnpicklingError) as error:
            raise ValueError(f"{self.path} cannot be read: remove it to begin anew ({error})") from None
        before, now = stored["identity"], self.identity
        changed = [f"{name} was {before.get(name)} and is {now.get(name)}" for name in sorted(before | now)
                   if before.get(name) != now.get(name)]  # fmt: skip
        if changed:
            raise ValueError(
                f"{self.path} is of another run: {'; '.join(changed)}. Run that one again to go on with it, or remove "
                f"{self.path.parent} to begin anew"
            )
        return stored["state"]

    @property
    def due(self) -> bool:
        return time.monotonic() - self._written >= EVERY_S

    def save(self, state: dict[str, Any]) -> None:
        """Write the state. A full disk is a warning and not an error: the last file stays.

        `state` has tensors, numbers, text, lists and dicts.
        """
        if self.path is None:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(self.path) as temporary:
                torch.save({"identity": self.identity, "state": state}, temporary)
        except (OSError, RuntimeError) as error:  # torch turns an error of the disk into a RuntimeError
            warnings.warn(f"{self.path} could not be written, and the run goes on: {error}", stacklevel=2)
        finally:
            self._written = time.monotonic()


def identity(
    method: str,
    recipe: dict[str, Any],
    network: nn.Module,
    preprocessing: Preprocessing,
    train: Samples,
    held_out: Samples | None,
) -> dict[str, Any]:
    """All that the weights at the end of a run depend on, by name."""
    return {
        "method": method,
        **recipe,
        "network": digest_of_weights(network),
        "preprocessing": preprocessing.to_json(),
        "images to learn from": digest_of_samples(train),
        "held-out images": digest_of_samples(held_out),
    }


def digest_of_weights(network: nn.Module) -> str:
    sha = hashlib.sha256()
    for name, tensor in network.state_dict().items():
        sha.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        sha.update(_bytes(tensor))
    return sha.hexdigest()[:16]


def digest_of_samples(samples: Samples | None) -> str:
    """A digest of all classes, of the files, and of some images: reading all of them would take as long as an epoch."""
    if samples is None:
        return "none"
    sha = hashlib.sha256(f"{tuple(samples.pixels.shape)} {samples.digest}".encode())
    sha.update(_bytes(samples.classes))
    for row in torch.linspace(0, len(samples) - 1, min(SAMPLED, len(samples))).long().tolist():
        sha.update(_bytes(samples.pixels[row]))
    return sha.hexdigest()[:16]


def _bytes(tensor: Tensor) -> bytes:
    return tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes()
