from functools import partial
from typing import Any

import pytest

from tests.conftest import toy_bundle

LOWERED: dict[str, dict[str, Any]] = {
    "int8": {"width": 96},  # the exporter computes casts of smaller weights itself
    "bf16": {},
    "fp16": {"knows_images": True},
}


@pytest.fixture(scope="session")
def lowered(once):
    """The bundle of a toy in a precision, exported once: `lowered("int8")`. In fp16 it knows the reference images."""
    return lambda precision: once(f"toy {precision}", partial(toy_bundle, precision=precision, **LOWERED[precision]))
