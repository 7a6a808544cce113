"""model/fit/least_squares.py: the closed form, computed otherwise, and each group left out by learning anew."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from model.fit.least_squares import STRENGTHS, LinearMap, least_squares

CLASSES = 3


def drawn(seed: int, samples: int, features: int) -> tuple[np.ndarray, np.ndarray]:
    """Features on different scales, far from zero, that say something about the class."""
    rng = np.random.default_rng(seed)
    classes = np.concatenate([np.arange(CLASSES), rng.integers(0, CLASSES, samples - CLASSES)])
    x = rng.normal(size=(samples, features)) + 0.5 * rng.normal(size=(CLASSES, features))[classes]
    return x * rng.uniform(0.1, 10, features) + rng.normal(0, 5, features), classes


class Problem:
    """The normal equations with a column of ones that is not regularised. Each class has the same weight."""

    def __init__(self, x: np.ndarray, classes: np.ndarray) -> None:
        weights = 1 / np.bincount(classes)[classes]
        self.weights = weights / weights.mean()
        mean = np.average(x, axis=0, weights=self.weights)
        std = np.sqrt(np.average((x - mean) ** 2, axis=0, weights=self.weights))
        self.x, self.targets = np.hstack([(x - mean) / std, np.ones((len(x), 1))]), 2 * np.eye(CLASSES)[classes] - 1

    def logits(self, strength: float, without: np.ndarray | None = None) -> np.ndarray:
        """Of all samples, by those that are not left out: (N, classes)."""
        kept = np.delete(np.arange(len(self.x)), [] if without is None else without)
        x, weighted = self.x[kept], self.x[kept] * self.weights[kept, None]
        penalty = np.diag([strength * len(self.x)] * (x.shape[1] - 1) + [0.0])
        return self.x @ np.linalg.solve(weighted.T @ x + penalty, weighted.T @ self.targets[kept])


def logits(head: LinearMap, x: np.ndarray) -> np.ndarray:
    return x @ head.weight.numpy().T + head.bias.numpy()


@given(
    seed=st.integers(0, 2**32 - 1),
    samples=st.integers(5, 40),
    features=st.integers(1, 40),
    strength=st.sampled_from(STRENGTHS[4:]),  # the normal equations are less exact than what they are to check
)
@settings(max_examples=40, deadline=None)
def test_it_is_the_solution_of_the_normal_equations(seed, samples, features, strength):
    x, classes = drawn(seed, samples, features)
    head = least_squares(torch.from_numpy(x), torch.from_numpy(classes), count=CLASSES, strengths=(strength,))
    np.testing.assert_allclose(logits(head, x), Problem(x, classes).logits(strength), atol=1e-8)


@pytest.mark.parametrize(("samples", "features"), [(30, 8), (12, 40)])
@pytest.mark.parametrize("alike", [1, 3], ids=["alone", "with near-copies"])
def test_a_left_out_group_is_predicted_by_a_fit_to_the_others(samples, features, alike):
    x, classes = drawn(1, samples, features)
    groups = np.random.default_rng(0).permutation(samples) // alike
    groups[groups == 1] = 0  # groups of two sizes
    head = least_squares(torch.from_numpy(x), torch.from_numpy(classes), count=CLASSES, groups=torch.from_numpy(groups))
    problem = Problem(x, classes)
    for group in np.unique(groups):
        (rows,) = np.nonzero(groups == group)
        np.testing.assert_allclose(head.left_out[rows], problem.logits(head.strength, rows)[rows], atol=1e-8)


def test_the_strength_with_the_smallest_error_is_taken():
    x, classes = (torch.from_numpy(part) for part in drawn(2, 60, 40))
    targets = 2 * torch.eye(CLASSES, dtype=torch.float64)[classes] - 1

    def error(strength: float) -> float:
        left_out = least_squares(x, classes, count=CLASSES, strengths=(strength,)).left_out
        return (left_out - targets).square().sum().item()

    chosen = least_squares(x, classes, count=CLASSES).strength
    assert error(chosen) == min(map(error, STRENGTHS))
    assert STRENGTHS[0] < chosen < STRENGTHS[-1]


def test_a_feature_that_never_changes_weighs_nothing():
    x, classes = drawn(4, 20, 5)
    x[:, 2] = 7
    head = least_squares(torch.from_numpy(x), torch.from_numpy(classes), count=CLASSES)
    assert (head.weight[:, 2] == 0).all()
    assert head.weight.isfinite().all()
