"""model/fit/groups.py: near-copies by likeness and by name, and what are none."""

from pathlib import Path

import torch

from model.fit.groups import near_copies

FEATURES = 64


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, FEATURES, generator=torch.Generator().manual_seed(seed))


def sets(groups: torch.Tensor) -> set[frozenset[int]]:
    return {frozenset((groups == group).nonzero().flatten().tolist()) for group in groups.unique()}


def test_copies_with_noise_are_one_group_also_where_labels_are_far_apart():
    originals, classes = 10 * drawn(1)[:, :1] + drawn(20), torch.arange(20) % 2
    originals[classes == 1] += 30  # so that all images of a label have a cosine near 1
    copies = originals.repeat_interleave(3, dim=0) + 0.05 * drawn(60, seed=1)
    found = near_copies(copies, classes.repeat_interleave(3))
    assert sets(found) == {frozenset(range(3 * n, 3 * n + 3)) for n in range(20)}
    assert len(near_copies(originals, classes).unique()) == 20


def test_changed_copies_of_one_file_are_one_group_by_their_names():
    names = ["a/1_jpg.rf.0a.jpg", "a/1_jpg.rf.0b.jpg", "b/1_jpg.rf.0c.jpg", "a/2.jpg", "a/1_jpg.rf.0d.jpg"]
    found = near_copies(drawn(5), torch.tensor([0, 0, 0, 0, 1]), [Path(name) for name in names])
    assert sets(found) == {frozenset({0, 1}), frozenset({2}), frozenset({3}), frozenset({4})}


def test_a_chain_of_likeness_leaves_half_of_a_label_to_learn_from():
    film = drawn(1) + 0.02 * drawn(70, seed=1).cumsum(0)  # each frame is like the next
    found = near_copies(torch.cat([film, drawn(30, seed=2)]), torch.zeros(100, dtype=torch.int64))
    of_film = torch.bincount(found[:70])
    assert of_film.max() <= 50
    assert len(of_film.nonzero()) == 2
    assert len(found[70:].unique()) == 30


def test_images_that_are_all_the_same_are_no_error():
    assert torch.bincount(near_copies(torch.ones(6, 3), torch.zeros(6, dtype=torch.int64))).max() <= 3
