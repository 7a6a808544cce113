"""export/reference.py: the numbers that the graphs are held against, held against others' formulas and against sums."""

import dataclasses

import numpy as np
import pytest
import torch

from export.parity import unexplained
from export.reference import reference
from model.checkpoints.checkpoint import Checkpoint
from tests.support.switches import SWITCHES
from tests.support.toy import toy_checkpoint

CLASSES = np.array([[0, 6, 3], [5, 2, 1]])


def noise(checkpoint: Checkpoint, pictures: int = 2) -> np.ndarray:
    size = (pictures, *checkpoint.preprocessing.size, 3)
    return np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8)


def in_float64(checkpoint: Checkpoint) -> Checkpoint:
    return dataclasses.replace(checkpoint, model=checkpoint.model.double())


def normalised(checkpoint: Checkpoint, pixels: np.ndarray) -> torch.Tensor:
    of = checkpoint.preprocessing
    mean, std = torch.tensor([of.mean, of.std], dtype=torch.double)
    return ((torch.from_numpy(pixels).double() / 255 - mean) / std).permute(0, 3, 1, 2)


@pytest.mark.parametrize("changes", [{}, *SWITCHES.values()], ids=["plain", *SWITCHES])
def test_every_logit_is_the_sum_of_its_parts(changes):
    checkpoint = in_float64(toy_checkpoint(**changes))
    numbers = reference(checkpoint, noise(checkpoint), CLASSES)
    assert np.abs(unexplained(numbers)).max() < 1e-10
    assert numbers["evidence_heads"].sum(-1) == pytest.approx(numbers["evidence"].sum(-1), abs=1e-10)
    assert np.abs(numbers["evidence"]).max() > 0.01


@torch.no_grad()
def test_evidence_is_the_closed_form_of_a_class_token_and_a_linear_head():
    """u = (gamma * w - mean(gamma * w)) / sigma; evidence = sum over heads of a * (v . (W_O^T u) of the head)."""
    checkpoint = in_float64(toy_checkpoint(layer_scale=True))
    model, pixels = checkpoint.model, noise(checkpoint)
    streams = model.layers(normalised(checkpoint, pixels))
    rows = model.attentions(normalised(checkpoint, pixels))[:, :, :, 0]  # (B, L, H, T)
    found = reference(checkpoint, pixels, CLASSES)["evidence"]
    sigma = torch.sqrt(streams[-1][:, 0].var(-1, unbiased=False) + model.norm.eps)  # (B,)
    scaled = model.norm.weight * model.head.weight[CLASSES]  # (B, K, D)
    u = (scaled - scaled.mean(-1, keepdim=True)) / sigma[:, None, None]
    for layer, block in enumerate(model.blocks):
        values = block.attn.qkv(block.norm1(streams[layer])).chunk(3, dim=-1)[2]  # (B, T, D)
        projected = (block.ls1.gamma * u) @ block.attn.proj.weight  # (B, K, D)
        values, projected = (x.unflatten(-1, (model.config.heads, -1)) for x in (values, projected))
        expected = torch.einsum("bht,bthd,bkhd->bkt", rows[:, layer], values, projected)
        assert found[:, :, layer] == pytest.approx(expected.numpy(), abs=1e-10)


@torch.no_grad()
def test_rollout_is_attention_flows():
    """compute_joint_attention of samiraabnar/attention_flow `attention_graph_util.py`, written again."""
    checkpoint = in_float64(toy_checkpoint())
    pixels = noise(checkpoint, 1)
    matrices = checkpoint.model.attentions(normalised(checkpoint, pixels))[0].mean(1).numpy()
    augmented = matrices + np.eye(matrices.shape[1])
    augmented /= augmented.sum(axis=-1, keepdims=True)
    joint = augmented[0]
    for of_layer in augmented[1:]:
        joint = of_layer @ joint
    assert reference(checkpoint, pixels, CLASSES[:1])["rollout"][0] == pytest.approx(joint[0], abs=1e-12)


@pytest.mark.parametrize("changes", [{"registers": 2}, {"class_token": False, "pool": "mean"}])
@torch.no_grad()
def test_distance_is_the_keras_formula(changes):
    """`compute_mean_attention_dist` of keras.io/examples/vision/probing_vits, for an oblong grid and in patches."""
    checkpoint = in_float64(toy_checkpoint(**changes))
    pixels = noise(checkpoint, 1)
    matrices = checkpoint.model.attentions(normalised(checkpoint, pixels))[0].numpy()[..., -15:, -15:]
    apart = np.array([[np.hypot(i // 5 - j // 5, i % 5 - j % 5) for j in range(15)] for i in range(15)])
    expected = np.mean(np.sum(matrices * apart, axis=-1), axis=-1)
    assert reference(checkpoint, pixels, CLASSES[:1])["distance"][0] == pytest.approx(expected, abs=1e-12)


def test_the_last_layer_of_the_lens_is_the_answer():
    checkpoint = toy_checkpoint()
    numbers = reference(checkpoint, noise(checkpoint), CLASSES)
    scores = torch.from_numpy(numbers["logits"]).softmax(-1).numpy()
    assert numbers["lens"][:, -1] == pytest.approx(np.take_along_axis(scores, CLASSES, 1), abs=1e-6)


def test_images_that_fill_the_memory_are_computed_one_after_another(monkeypatch):
    checkpoint = in_float64(toy_checkpoint())
    pixels = noise(checkpoint)
    whole = reference(checkpoint, pixels, CLASSES)
    monkeypatch.setattr("export.reference.MATRICES", 1)
    for name, numbers in reference(checkpoint, pixels, CLASSES).items():
        assert numbers == pytest.approx(whole[name], abs=1e-12), name
