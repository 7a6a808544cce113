"""model/unlike.py: what lies outside of the widest directions, less the energy of labels read from features."""

import math

import numpy as np
import pytest
import torch

from model.checkpoints.checkpoint import Checkpoint
from model.unlike import LAYERS, SUBSPACE, Unlike, features
from tests.support.toy import toy_checkpoint

COUNT, WIDTH, LABELS = 300, 400, 4


def images(count: int, *, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Features in other units, of which one is constant, and their classes."""
    rng = np.random.default_rng(seed)
    means, units = np.random.default_rng(0).normal(0, 2, (LABELS, WIDTH)), 10.0 ** np.arange(-2, 2).repeat(WIDTH // 4)
    classes = rng.integers(0, LABELS, count)
    rows = (means[classes] + rng.normal(0, 1, (count, WIDTH))) * units
    rows[:, 0] = 7
    return torch.from_numpy(rows), torch.from_numpy(classes)


@pytest.mark.parametrize("labels", [LABELS, 1, 200])
def test_it_is_virtual_logit_matching(labels):
    """As the paper has it, by a singular value decomposition and the normal equations. 200 labels are read from 256
    directions, few from all features.
    """
    known, classes = images(COUNT, seed=1)
    classes = torch.arange(COUNT) % labels if labels == 200 else classes.clamp(max=labels - 1)
    others = images(20, seed=2)[0]
    found = Unlike.learned(known, 3 * classes)(others).flatten()
    spread = known.std(0, correction=0)
    spread[0] = torch.inf
    z, of_others = (known - known.mean(0)) / spread, (others - known.mean(0)) / spread
    _, _, vh = torch.linalg.svd(z, full_matrices=False)
    wide = vh[:256]
    outside, of_known = ((rows - rows @ vh[:SUBSPACE].T @ vh[:SUBSPACE]).norm(dim=1) for rows in (of_others, z))
    if labels == 1:
        assert torch.allclose(found, outside)
        return
    targets = 2.0 * torch.nn.functional.one_hot(classes).double() - 1
    ridge = 0.05 * z.square().sum() / COUNT * torch.eye(len(wide))
    weight = torch.linalg.solve(wide @ z.T @ z @ wide.T + ridge, wide @ z.T @ (targets - targets.mean(0)))
    logits, known_logits = (
        (rows @ wide.T @ weight + targets.mean(0)) * math.log(15 * labels) / 2 for rows in (of_others, z)
    )
    rate = known_logits.amax(1).mean() / of_known.mean()
    assert torch.allclose(found, rate * outside - logits.logsumexp(1))


def test_few_images_do_not_span_all_that_they_are():
    known, classes = images(10, seed=1)
    assert torch.isfinite(Unlike.learned(known, classes)(known)).all()
    assert Unlike.learned(known, classes).subspace.sum() == 4


@pytest.mark.parametrize("changes", [{}, {"class_token": False, "pool": "mean"}, {"depth": 8, "pool": "cls_mean"}])
def test_features_are_the_embedding_and_the_tokens_of_the_last_layers_without_the_weights_of_norms(changes):
    checkpoint: Checkpoint = toy_checkpoint(**changes)
    config, model = checkpoint.config, checkpoint.model
    with torch.no_grad():
        streams = model.layers(torch.randn(2, 3, *config.image_size))
        embedding = model.embedding(model.normed(streams))
        found = features(config, streams[:-1], embedding)
        last = model.norm(streams[-2])
    layers, tokens = min(LAYERS, config.depth), 1 + config.class_token
    assert found.shape == (2, config.embedding + layers * tokens * config.width)
    assert found[:, : config.embedding].equal(embedding)
    patches = (last[:, len(config.prefix) :].mean(1) - model.norm.bias) / model.norm.weight
    assert torch.allclose(found[:, -config.width :], patches, atol=1e-5)
