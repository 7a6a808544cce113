import numpy as np
import pytest


@pytest.fixture
def images() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.integers(0, 256, (64, 64, 3), dtype=np.uint8) for _ in range(4)]


@pytest.fixture
def batches_pay(monkeypatch) -> None:
    """The largest that are allowed."""
    monkeypatch.setattr("app.inference.batch_cost.LatencyModel.best", property(lambda latency: latency.sizes[-1]))
