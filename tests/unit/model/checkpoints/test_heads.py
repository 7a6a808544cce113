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


PLACES = ("0", "net.2")
A_NORM = ("mlp_head.1", "0")  # stands there beside this head


@pytest.mark.parametrize(
    ("case", "place"), [(case, place) for case in HEADS for place in PLACES if (HEADS[case], place) != A_NORM]
)
def test_one_linear_layer_in_a_sequential_is_a_linear_head(tmp_path, case, place):
    head = HEADS[case].removesuffix(".head").removesuffix(".1")
    folder = altered(case, tmp_path, tensors=moved(HEADS[case], f"{head}.{place}."))
    tuned, plain = loaded(folder, case), loaded(path_of(GOLDEN / case), case)
    assert same_weights(tuned.model, plain.model)
    assert tuned.config == plain.config


LAYER = {"classifier.3.weight": torch.ones(5, 5), "classifier.3.bias": torch.ones(5)}
NORM = {"classifier.0.weight": torch.ones(24), "classifier.0.bias": torch.ones(24)}
BATCHES = {"classifier.0.num_batches_tracked": torch.tensor(3), "classifier.0.running_mean": torch.ones(24), **NORM}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (LAYER, "a head of more than one layer"),
        (NORM, "classifier.0.weight beside classifier.1.weight: a head that is not linear"),
        (BATCHES, "classifier.0.running_mean"),
    ],
    ids=["two layers", "norm", "batch norm"],
)
def test_other_heads_are_refused_by_name(tmp_path, more, message):
    case = "huggingface-vit"
    folder = altered(case, tmp_path, tensors=lambda s: with_more(more)(moved("classifier", "classifier.1.")(s)))
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(folder)


TIMM = {"embed_dim": "24", "depth": "2", "num_heads": "3", "patch_size": "4", "mlp_ratio": "2.0"}


@pytest.mark.parametrize("head", ["fc", "classifier", "cls_head", "last_linear", "heads", "top", "classifier.1"])
@pytest.mark.parametrize("case", ["timm-plain", "torchvision-vit", "vit-pytorch-1.9.2-one-head"])
def test_a_linear_layer_beside_a_backbone_is_its_head(tmp_path, case, head):
    """It reads what the backbone gives without a head, which is what the family's own head reads."""
    own = HEADS[case]

    def beside(state):
        inside = {f"backbone.{name}": tensor for name, tensor in state.items() if not name.startswith(f"{own}.")}
        return inside | {
            name.replace(f"{own}.", f"{head}."): t for name, t in state.items() if name.startswith(f"{own}.")
        }

    tuned, plain = loaded(altered(case, tmp_path, tensors=beside), case), loaded(path_of(GOLDEN / case), case)
    assert same_weights(tuned.model, plain.model)
    assert f"{head}.weight is taken for the whole head" in tuned.advice or head in ("heads", "classifier")


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


@pytest.mark.parametrize("beside", ["norm.weight", "bottleneck.running_mean", "temperature", "adapter.down.weight"])
def test_a_layer_between_a_network_and_its_head_is_not_supported_and_inspect_says_so(tmp_path, beside):
    """What is unknown is never proposed to be left out: without it, the numbers would be wrong."""
    own = {"fc.weight": torch.ones(5, 24), "fc.bias": torch.ones(5), beside: torch.ones(24)}

    def change(state):
        return {f"backbone.{name}": t for name, t in state.items() if not name.startswith("head.")} | own

    folder = altered("timm-plain", tmp_path, tensors=change)
    (problem,) = describe_checkpoint(folder).problems
    assert problem == f"unused: {beside}. The layer that has it is not supported"
    with pytest.raises(CheckpointError, match=rf"unused: {beside}\. The layer that has it is not supported$"):
        load_checkpoint(folder)


def test_two_heads_beside_a_backbone_are_refused_by_name(tmp_path):
    def beside(state):
        return {f"net.{name}" if not name.startswith("head") else f"fc.{name[5:]}": t for name, t in state.items()} | {
            "classifier.weight": torch.ones(3, 24)
        }

    with pytest.raises(CheckpointError, match="classifier, fc stand beside the network, and one head is supported"):
        load_checkpoint(altered("timm-plain", tmp_path, tensors=beside))


def test_dictionaries_of_modules_are_one_network(tmp_path):
    plain = load_checkpoint(GOLDEN / "deit/checkpoint.pth", overrides=stated("deit"))
    state = torch.load(GOLDEN / "deit/checkpoint.pth", weights_only=True)["model"]
    head = {name.removeprefix("head."): state.pop(name) for name in ("head.weight", "head.bias")}
    torch.save({"model": {"backbone": state, "head": head}, "epoch": 3}, tmp_path / "x.pth")
    loaded = load_checkpoint(tmp_path / "x.pth", overrides=stated("deit"))
    assert same_weights(loaded.model, plain.model)
    assert not loaded.weights


def beside_transformers(pooler):
    def change(state):
        inside = {f"model.{name.removeprefix('vit.')}": t for name, t in state.items() if name.startswith("vit.")}
        more = {"model.pooler.dense.weight": torch.randn(24, 24), "model.pooler.dense.bias": torch.randn(24)}
        return (
            inside
            | (more if pooler else {})
            | renamed("classifier", "fc")({name: t for name, t in state.items() if name.startswith("classifier")})
        )

    return change


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
    folder = altered("huggingface-vit", tmp_path, tensors=beside_transformers(pool == "pooler_output"))
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
    def change(state):
        return {
            n: t
            for n, t in state.items()
            if not re.fullmatch(rf"({HEADS.get(case)}|\w+_classifier)\.bias|(.*/)?head/bias", n)
        }

    own = loaded(altered(case, tmp_path, tensors=change), case)
    plain = loaded(path_of(GOLDEN / case), case).model
    for name, tensor in plain.state_dict().items():
        if re.fullmatch(r"head(_dist)?\.bias", name):
            tensor.zero_()
    images = torch.randn(2, 3, *plain.config.image_size)
    with torch.inference_mode():
        torch.testing.assert_close(own.model(images), plain(images))
    assert not own.config.head_bias
    assert "has no bias beside it: the head is served without one." in own.advice
