"""app/inference/familiarity.py: a share of held-out images, however few they are; low for what is unlike them."""

import numpy as np
import pytest

from app.bundle import load_bundle
from app.errors import UnfamiliarImage
from app.inference.familiarity import Distance, Familiarity, open_familiarity
from tests.support.familiar import familiar_bundle

FEATURES, CLASSES = 24, 3
UNITS = 10.0 ** np.arange(-2, 1).repeat(FEATURES // 3)
MEANS = np.random.default_rng(0).normal(0, 2, (CLASSES, FEATURES))


def images(count: int, *, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Embeddings and their classes. Their numbers have other units, and one is constant."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, CLASSES, count)
    rows = MEANS[classes] + rng.normal(0, 1, (count, FEATURES))
    rows[:, 0] = 7
    return (rows * UNITS).astype(np.float32), classes


def knowing(count: int, *, seed: int, learned: int = 0, labelled: bool = True) -> Familiarity:
    rows, classes = images(count, seed=seed)
    return Familiarity.learn(rows[:learned], rows[learned:], classes if labelled else 0 * classes)


def shares(known: Familiarity, rows: np.ndarray) -> np.ndarray:
    return np.array([known.of(row) for row in rows])


@pytest.mark.parametrize(("learned", "labelled"), [(0, True), (60, True), (0, False)])
def test_of_images_like_the_held_out_ones_a_share_is_less_familiar_than_that_share(learned, labelled):
    """Of each set of 40 another share; their mean is what was promised."""
    below, promised = [], np.array([0.05, 0.2, 0.5])
    for seed in range(40):
        known = knowing(learned + 40, seed=seed, learned=learned, labelled=labelled)
        found = shares(known, images(50, seed=1000 + seed)[0])
        below.append([(found <= share).mean() for share in promised])
        assert found.min() >= 1 / 41
        assert found.max() <= 1
    assert (np.mean(below, axis=0) <= promised + 0.015).all()
    assert (np.mean(below, axis=0) >= 0.5 * promised).all()


@pytest.mark.parametrize("labelled", [True, False])
def test_images_that_are_unlike_have_the_least_and_the_middle_of_a_class_the_most(labelled):
    known = knowing(100, seed=1, labelled=labelled)
    strange = images(20, seed=2)[0] * np.where(np.arange(FEATURES) % 2, 1, -1).astype(np.float32)
    strange[:, 0] *= -1
    assert shares(known, strange).max() < 0.05
    assert shares(known, (MEANS * UNITS).astype(np.float32)).min() > 0.5
    with pytest.raises(UnfamiliarImage, match=r"its familiarity is 0\.0099, and 0\.05 is the least\.$"):
        known.of(9 * strange[0], least=0.05)
    assert known.of(9 * strange[0], least=1 / 101) == 1 / 101


def test_the_distance_is_that_to_the_nearest_class_less_that_to_all_and_more_in_doubt():
    """Without shrinkage it is known in closed form; with it, a unit matrix has a part in each."""
    rows, classes = (array.astype(float) for array in images(60, seed=3))
    others = np.linspace(rows[classes == 0][0], rows[classes == 1][0], 20)
    mean, deviation = rows.mean(0), np.where(rows.std(0) > 1e-9, rows.std(0), np.inf)
    z, of_others = (rows - mean) / deviation, (others - mean) / deviation
    means = np.stack([z[classes == kind].mean(0) for kind in range(CLASSES)])

    def inverse(of):
        covariance = of.T @ of / 60
        return np.linalg.inv(0.5 * covariance + 0.5 * np.trace(covariance) / FEATURES * np.eye(FEATURES))

    apart, unit = of_others[:, np.newaxis] - means, 0.04 * FEATURES
    to_classes = np.einsum("ncf,fg,ncg->nc", apart, inverse(z - means[classes.astype(int)]), apart)
    likely = np.exp(-to_classes / unit)
    doubt = -np.log(likely.max(1) / likely.sum(1))
    assert 0.1 < doubt.max() < np.log(CLASSES)
    to_all = np.einsum("nf,fg,ng->n", of_others, inverse(z), of_others)
    assert Distance.to(rows, classes).of(others) == pytest.approx(to_classes.min(1) - to_all + unit * doubt)


def test_learned_images_are_compared_with_and_are_not_counted():
    assert len(knowing(60, seed=3, learned=20).held_out) == 40


def test_what_is_written_is_what_is_read(tmp_path):
    rows, classes = images(50, seed=4)
    written = Familiarity.learn(rows[:0], rows, classes)
    read = open_familiarity(load_bundle(familiar_bundle(tmp_path, rows, classes)))
    others = images(9, seed=5)[0]
    assert shares(read, others).tolist() == shares(written, others).tolist()
