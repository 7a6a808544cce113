"""model/fit/least_squares.py: the closed form, computed otherwise, and each sample left out by learning anew."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from model.fit.least_squares import STRENGTHS, least_squares

CLASSES = 3


def drawn(seed: int, samples: int, features: int) -> tuple[np.ndarray, np.ndarray]:
    """Features on different scales, far from zero, that say something about the class."""
    rng = np.random.default_rng(seed)
    classes = np.concatenate([np.arange(CLASSES), rng.integers(0, CLASSES, samples - CLASSES)])
    x = rng.normal(size=(samples, features)) + 0.5 * rng.normal(size=(CLASSES, features))[classes]
    return x * rng.uniform(0.1, 10, features) + rng.normal(0, 5, features), classes


def solved(x: np.ndarray, classes: np.ndarray, strength: float, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    """The normal equations with a column of ones that is not regularised: (features + 1, classes)."""
    standardised = np.hstack([(x - mean) / std, np.ones((len(x), 1))])
    penalty = np.diag([strength] * x.shape[1] + [0.0])
    return np.linalg.solve(standardised.T @ standardised + penalty, standardised.T @ (2 * np.eye(CLASSES)[classes] - 1))


@given(
    seed=st.integers(0, 2**32 - 1),
    samples=st.integers(5, 40),
    features=st.integers(1, 40),
    strength=st.sampled_from(STRENGTHS[4:]),  # the normal equations are less exact than what they are to check
)
@settings(max_examples=40, deadline=None)
def test_it_is_the_solution_of_the_normal_equations(seed, samples, features, strength):
    x, classes = drawn(seed, samples, features)
    mean, std = x.mean(0), x.std(0)
    head = least_squares(torch.from_numpy(x), torch.from_numpy(classes), count=CLASSES, strengths=(strength,))
    expected = solved(x, classes, strength * samples, mean, std)
    np.testing.assert_allclose(head.weight.numpy() * std, expected[:-1].T, atol=1e-8)
    predicted = x @ head.weight.numpy().T + head.bias.numpy()
    np.testing.assert_allclose(predicted, ((x - mean) / std) @ expected[:-1] + expected[-1], atol=1e-8)


@pytest.mark.parametrize(("samples", "features"), [(30, 8), (12, 40)])
def test_a_left_out_sample_is_predicted_by_a_fit_to_the_others(samples, features):
    x, classes = drawn(1, samples, features)
    mean, std = x.mean(0), x.std(0)
    head = least_squares(torch.from_numpy(x), torch.from_numpy(classes), count=CLASSES)
    for i in range(samples):
        others = np.delete(np.arange(samples), i)
        learned = solved(x[others], classes[others], head.strength * samples, mean, std)
        expected = ((x[i] - mean) / std) @ learned[:-1] + learned[-1]
        np.testing.assert_allclose(head.left_out[i].numpy(), expected, atol=1e-8)


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
