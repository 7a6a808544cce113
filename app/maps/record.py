"""The maps of an image, what is kept of it until somebody asks for them, and both as the bytes that a store keeps."""

import math
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import reduce
from typing import Self

import numpy as np
import numpy.typing as npt

from app.bundle import Bundle
from app.errors import ServiceError
from app.images.messages import GarbledAnswer, pack_answer, unpack_answer
from app.images.preprocess import PreprocessedImage
from app.images.upload import Buffer
from app.inference.engine import DIRECTION, Outputs

VERSION = 6  # of the bytes of a record: versions do not find each other's records

Shapes = Mapping[str, tuple[int, ...]]

_CHECKSUM = struct.Struct("!Q")  # CRC-32; as long as the widest number behind it, so that all are aligned


class DamagedRecord(Exception):
    """The bytes are not what `pack` wrote for this model."""


@dataclass(frozen=True, kw_only=True)
class Maps:
    """All maps of an image. In shapes: L layers, H heads, T tokens (the prefix, then the patches row by row), C
    classes, K explained.

    Without a head C is 0 and there are no `classes`; evidence is then for vectors alone.
    Numbers are kept as the graph gives them: half precision would be wrong by up to 4.9e-4 of each.
    """

    classes: npt.NDArray[np.int64]  # (K,), those that are explained; DIRECTION where it is a vector
    logits: npt.NDArray[np.float32]  # (C,), of all classes
    embedding: npt.NDArray[np.float32]  # (F,): what the head reads
    attention: npt.NDArray[np.float32]  # (L, H, T): row of the class token after softmax, sums to 1
    rollout: npt.NDArray[np.float32]  # (T,), sums to 1
    evidence: npt.NDArray[np.float32]  # (K, L, T): what token t, read in layer l, adds to the logit; signed
    evidence_heads: npt.NDArray[np.float32]  # (K, L, H): the same by head
    evidence_rest: npt.NDArray[np.float32]  # (K, 2): what the MLPs add, and what the constants add
    distance: npt.NDArray[np.float32]  # (L, H): mean attention distance, in patches
    lens: npt.NDArray[np.float32] | None = None  # (L, K): scores if the head read layer l; None: this has no meaning

    @classmethod
    def of(cls, outputs: Outputs) -> Self:
        """A view of the graph's outputs for one image, without the batch dimension."""
        shapes = shapes_of({name: array.shape for name, array in outputs.items()})
        arrays = {name: outputs.get(name, np.zeros(shape)) for name, shape in shapes.items()}
        return cls(**{name: array.astype(_dtype(name), copy=False) for name, array in arrays.items()})


def shapes_of(outputs: Shapes) -> dict[str, tuple[int, ...]]:
    """The shapes of the arrays of `Maps`, from the shapes of the graph's outputs for one image."""
    layers, heads, tokens = outputs["attention"]
    headless = {"classes": (0,), "logits": (0,), "evidence_rest": (0, 2)}
    headless |= {"evidence": (0, layers, tokens), "evidence_heads": (0, layers, heads)}
    shapes = {**headless, **outputs}
    return {field.name: shapes[field.name] for field in fields(Maps) if field.name in shapes}


def _dtype(name: str) -> str:
    return "<i8" if name == "classes" else "<f4"


@dataclass(frozen=True, kw_only=True)
class KeptImage:
    """What is kept of an image, so that its maps can be made when somebody asks for them."""

    image: PreprocessedImage
    classes: tuple[int, ...]  # the K most likely of the answer, most likely first


@dataclass(frozen=True, kw_only=True)
class RecordFormat:
    """Images and maps as bytes: a checksum, then the numbers in the order of `shapes`, or the classes and the image as
    a worker sends it.

    The bytes do not say what is where: the model does. The checksum finds damage and the records of other models, not
    forgery: everything that can write to the store is trusted.
    """

    name: str  # of the version and the model
    shapes: Shapes  # of the maps
    size: tuple[int, int]  # height, width of the network's input

    @property
    def explained(self) -> int:
        """K, the number of classes with evidence."""
        return self.shapes["classes"][0]

    @property
    def least_bytes(self) -> int:
        """What an image and its maps take at least: the pixels and the numbers, without the thumbnail."""
        numbers = (math.prod(shape) * np.dtype(_dtype(name)).itemsize for name, shape in self.shapes.items())
        return 3 * math.prod(self.size) + sum(numbers)

    @classmethod
    def of(cls, bundle: Bundle) -> Self:
        manifest = bundle.manifest
        name = f"{VERSION}:{bundle.digest}"
        return cls(name=name, shapes=shapes_of(manifest.explains), size=manifest.image.size)

    def pack_image(self, kept: KeptImage) -> bytes:
        return self._sealed(np.array(kept.classes, _dtype("classes")).tobytes(), *pack_answer(kept.image))

    def unpack_image(self, packed: bytes) -> KeptImage:
        """Raises DamagedRecord."""
        try:
            self._check(packed)
            classes = np.frombuffer(packed, _dtype("classes"), self.explained, _CHECKSUM.size)
            self._check_classes(classes)
            answer = memoryview(packed)[_CHECKSUM.size + classes.nbytes :]
            return KeptImage(image=unpack_answer(answer, shape=self.size), classes=tuple(classes.tolist()))
        except (ValueError, struct.error, GarbledAnswer, ServiceError) as error:
            raise DamagedRecord from error

    def pack_maps(self, maps: Maps) -> bytes:
        return self._sealed(*(np.ascontiguousarray(getattr(maps, name)).data for name in self.shapes))

    def unpack_maps(self, packed: bytes) -> Maps:
        """Views of `packed`. Raises DamagedRecord."""
        try:
            self._check(packed)
            arrays, start = {}, _CHECKSUM.size
            for name, shape in self.shapes.items():
                flat = np.frombuffer(packed, _dtype(name), math.prod(shape), start)
                arrays[name], start = flat.reshape(shape), start + flat.nbytes
            if start != len(packed):
                raise ValueError("more numbers than maps have")
            self._check_classes(arrays["classes"])
            return Maps(**arrays)
        except (ValueError, struct.error) as error:
            raise DamagedRecord from error

    def pack_passes(self, answers: npt.NDArray[np.float32]) -> bytes:
        """Of an output (passes, ...) for an image under masks."""
        return self._sealed(np.ascontiguousarray(answers, "<f4").data)

    def unpack_passes(self, output: str, packed: bytes) -> npt.NDArray[np.float32]:
        """A view of `packed`. Raises DamagedRecord."""
        try:
            self._check(packed)
            return np.frombuffer(packed, "<f4", offset=_CHECKSUM.size).reshape(-1, *self.shapes[output])
        except (ValueError, struct.error) as error:
            raise DamagedRecord from error

    def _sealed(self, *parts: Buffer) -> bytes:
        return b"".join((_CHECKSUM.pack(self._checksum(*parts)), *parts))

    def _check(self, packed: bytes) -> None:
        if _CHECKSUM.unpack_from(packed) != (self._checksum(memoryview(packed)[_CHECKSUM.size :]),):
            raise ValueError("another checksum")

    def _check_classes(self, classes: npt.NDArray[np.int64]) -> None:
        known = (classes == DIRECTION) | (classes >= 0) & (classes < math.prod(self.shapes["logits"]))
        if not known.all():
            raise ValueError("an unknown class")

    def _checksum(self, *parts: Buffer) -> int:
        return reduce(lambda so_far, part: zlib.crc32(part, so_far), parts, zlib.crc32(self.name.encode()))
