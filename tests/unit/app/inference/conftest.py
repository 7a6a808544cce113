import numpy as np
import pytest


@pytest.fixture
def images() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.integers(0, 256, (64, 64, 3), dtype=np.uint8) for _ in range(4)]
