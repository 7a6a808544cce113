"""model/checkpoints/heads.py: linear heads in nn.Sequential and beside a backbone, in every family."""

import re

import pytest
import torch
from torch import nn

from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.load import describe_checkpoint
from tests.golden.test_checkpoints import path_of
from tests.support.altered import GOLDEN, altered, renamed, stated, with_more
from tests.support.runs import same_weights

HEADS = {
    "huggingface-vit": "classifier",
    "huggingface-dinov2": "classifier",
    "huggingface-siglip-classifier": "classifier",
    "timm-plain": "head",
    "timm-dinov3": "head",
    "torchvision-vit": "heads.head",
    "torchvision-hidden": "heads.head",
    "deit": "head",
    "vit-pytorch-1.2.4-cls": "mlp_head.1",
    "vit-pytorch-1.9.2-one-head": "mlp_head",
}


def loaded(path, case, **more):
    return load_checkpoint(path, overrides=stated(case) | more)


def moved(old, new):
    """The head `old` under the name `new`, and no other tensor."""
    return lambda state: {re.sub(rf"^{re.escape(old)}\.(?=(weight|bias)$)", new, n): t for n, t in state.items()}


@pytest.mark.parametrize("case", HEADS)
def test_one_linear_layer_in_a_sequential_is_a_linear_head(tmp_path, case):
    head = HEADS[case].removesuffix(".head").removesuffix(".1")
    folder = altered(case, tmp_path, tensors=moved(HEADS[case], f"{head}.net.2."))
    tuned, plain = loaded(folder, case), loaded(path_of(GOLDEN / case), case)
    assert same_weights(tuned.model, plain.model)
    assert tuned.config == plain.config


def beside(wrapper, old, new):
    """The network below a wrapper, and its head `old` beside it under the name `new`."""

    def change(state):
        head = {name.replace(f"{old}.", f"{new}."): t for name, t in state.items() if name.startswith(f"{old}.")}
        return head | {f"{wrapper}.{name}": t for name, t in state.items() if not name.startswith(f"{old}.")}

    return change


ONE = moved("classifier", "classifier.1.")
TWO_HEADS = beside("net", "classifier", "fc")


@pytest.mark.parametrize(
    ("change", "more", "message"),
    [
        (ONE, {"classifier.3.weight": torch.ones(5, 5)}, "a head of more than one layer"),
        (
            ONE,
            {"classifier.0.weight": torch.ones(24)},
            "0.weight beside classifier.1.weight: a head that is not linear",
        ),
        (ONE, {"classifier.0.running_mean": torch.ones(24)}, "classifier.0.running_mean"),  # without its counter
        (TWO_HEADS, {"clf.weight": torch.ones(3, 24)}, "clf, fc stand beside the network, and one head is supported"),
    ],
)
def test_other_heads_are_refused_by_name(tmp_path, change, more, message):
    folder = altered("huggingface-vit", tmp_path, tensors=lambda state: with_more(more)(change(state)))
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(folder)


OTHER_NAMES = ("classifier", "cls_head", "last_linear", "heads", "top", "classifier.1")


@pytest.mark.parametrize(
    ("case", "head"),
    [
        *(("timm-plain", head) for head in OTHER_NAMES),
        *((case, "fc") for case in ("timm-plain", "torchvision-vit", "vit-pytorch-1.9.2-one-head")),
    ],
)
def test_a_linear_layer_beside_a_backbone_is_its_head(tmp_path, case, head):
    """It reads what the backbone gives without a head, which is what the family's own head reads."""
    folder = altered(case, tmp_path, tensors=beside("backbone", HEADS[case], head))
    tuned, plain = loaded(folder, case), loaded(path_of(GOLDEN / case), case)
    assert same_weights(tuned.model, plain.model)
    assert f"{head}.weight is taken for the whole head" in tuned.advice or head == "classifier"


def behind(*layers):
    """The tensors of nn.Sequential(network, *layers), with the network below more names, as fastai's learner has it."""

    def change(state):
        inside = {f"0.model.{name}": tensor for name, tensor in state.items() if not name.startswith("head.")}
        return inside | nn.Sequential(nn.Identity(), *layers).state_dict()

    return change


NORMED = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(24), nn.Dropout(), nn.Linear(24, 5, bias=False)).eval()
nn.init.uniform_(NORMED[1].running_mean)


@pytest.mark.parametrize(
    "layers",
    [[nn.Linear(24, 5)], [nn.Dropout(), nn.Linear(24, 5)], [NORMED]],
    ids=["linear", "dropout", "fastai, lin_ftrs=[]"],
)
def test_a_linear_layer_behind_a_network_in_a_sequential_is_its_head(tmp_path, layers):
    folder = altered("timm-plain", tmp_path, tensors=behind(*layers), num_classes=5, label_names=None)
    tuned = loaded(folder, "timm-plain", **({"batch_norm_eps": "1e-5"} if layers == [NORMED] else {})).model
    images = torch.randn(2, 3, *tuned.config.image_size)
    with torch.inference_mode():
        expected = nn.Sequential(*layers).eval()(tuned.pooled(tuned.encode(images)))
        torch.testing.assert_close(tuned(images), expected)


def test_dictionaries_of_modules_are_one_network(saved):
    plain = load_checkpoint(GOLDEN / "deit/checkpoint.pth", overrides=stated("deit"))
    state = torch.load(GOLDEN / "deit/checkpoint.pth", weights_only=True)["model"]
    head = {name.removeprefix("head."): state.pop(name) for name in ("head.weight", "head.bias")}
    file = saved({"model": {"backbone": state, "head": head}, "epoch": 3})
    loaded = load_checkpoint(file, overrides=stated("deit"))
    assert same_weights(loaded.model, plain.model)
    assert not loaded.weights


def beside_transformers(state):
    dense = {"model.pooler.dense.weight": torch.randn(24, 24), "model.pooler.dense.bias": torch.randn(24)}
    return renamed("vit.", "model.")(renamed("classifier", "fc")(state)) | dense


@pytest.mark.parametrize(
    ("pool", "read"),
    [
        ("cls", lambda tokens, _: tokens[:, 0]),
        ("mean", lambda tokens, _: tokens[:, 1:].mean(1)),
        ("mean_all", lambda tokens, _: tokens.mean(1)),
        ("pooler_output", lambda tokens, dense: torch.tanh(dense(tokens[:, 0]))),
    ],
)
def test_what_a_head_beside_a_model_of_transformers_reads_has_to_be_given(tmp_path, pool, read):
    """`self.model = ViTModel(...)`, `self.fc = nn.Linear(...)`: nothing in the file says what is in between."""
    folder = altered("huggingface-vit", tmp_path, tensors=beside_transformers)
    with pytest.raises(CheckpointError, match=r"what fc\.weight of ViT.* --set pool="):
        load_checkpoint(folder)
    model = load_checkpoint(folder, overrides={"pool": pool}).model
    plain = load_checkpoint(GOLDEN / "huggingface-vit").model
    images = torch.randn(2, 3, *plain.config.image_size)
    assert isinstance(model.head, nn.Linear)
    with torch.inference_mode():
        expected = plain.head(read(plain.encode(images), model.pre_logits))
        torch.testing.assert_close(model(images), expected)
    with pytest.raises(CheckpointError, match="--set pool=max: it is one of cls, mean, mean_all"):
        describe_checkpoint(folder, overrides={"pool": "max"})


@pytest.mark.parametrize("case", [*HEADS, "huggingface-deit-teacher", "google-vit-jax", "google-siglip"])
def test_a_linear_head_may_have_no_bias(tmp_path, case):
    bias = re.compile(rf"({HEADS.get(case)}|\w+_classifier)\.bias|(.*/)?head/bias")
    folder = altered(case, tmp_path, tensors=lambda s: {name: s[name] for name in s if not bias.fullmatch(name)})
    own, plain = loaded(folder, case), loaded(path_of(GOLDEN / case), case).model
    for name, tensor in plain.state_dict().items():
        if re.fullmatch(r"head(_dist)?\.bias", name):
            tensor.zero_()
    images = torch.randn(2, 3, *plain.config.image_size)
    with torch.inference_mode():
        torch.testing.assert_close(own.model(images), plain(images))
    assert not own.config.head_bias
    assert "has no bias beside it: the head is served without one." in own.advice
