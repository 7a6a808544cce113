"""model/checkpoints/networks.py: the network of a file below any names, and what stands beside it."""

import re
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.load import describe_checkpoint
from model.checkpoints.networks import take
from model.checkpoints.source import Source
from model.checkpoints.weights import open_weights
from tests.golden.test_checkpoints import CASES, path_of
from tests.support.altered import GOLDEN
from tests.support.runs import same_weights

HEADS = {"architecture": "DeiT", "heads": "3"}
STATE = torch.load(GOLDEN / "deit/checkpoint.pth", weights_only=True)["model"]
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,11}", fullmatch=True)


@pytest.fixture(scope="module")
def plain():
    return load_checkpoint(GOLDEN / "deit/checkpoint.pth", overrides=HEADS).model


def below(wrapper, state=STATE):
    return {f"{wrapper}.{name}": tensor for name, tensor in state.items()}


@cache
def state_of(case):
    """The place of the state dict in a golden file, and its tensors."""
    return next(iter(open_weights(Source(path_of(case)).file).states.items()))


@given(state=st.sampled_from(CASES).map(state_of), wrappers=st.lists(NAMES, max_size=4))
@settings(max_examples=300, deadline=None)
def test_wrappers_of_any_name_are_dropped_for_every_family(state, wrappers):
    place, tensors = state
    between = "/" if any("/" in name for name in tensors) else "."
    around = "".join(f"{name}{between}" for name in wrappers)
    usual = take({place: tensors}, file="x", weights=None)
    wrapped = take({place: {f"{around}{name}": tensor for name, tensor in tensors.items()}}, file="x", weights=None)
    assert wrapped.tensors == usual.tensors
    assert len(wrapped.unread) == len(usual.unread)


@pytest.mark.parametrize(
    ("part", "wrapped"),
    [
        ("blocks.0.", "_orig_mod.blocks.0."),
        ("blocks.0.", "blocks.0._checkpoint_wrapped_module."),
        ("blocks.", "_fsdp_wrapped_module.blocks."),
        ("attn.", "_fsdp_wrapped_module._orig_mod.module.attn."),
    ],
)
def test_wrappers_inside_names_are_dropped(saved, plain, part, wrapped):
    state = {f"module._orig_mod.{name.replace(part, wrapped)}": tensor for name, tensor in STATE.items()}
    assert same_weights(load_checkpoint(saved({"model": state}), overrides=HEADS).model, plain)


COUNT, MANY = torch.tensor(3), torch.ones(6)
LEFT = {
    "criterion.pos_weight": MANY,  # of Lightning's modules
    "train_loss.weight": MANY,
    "val_acc.confmat": torch.ones(6, 6),  # of torchmetrics
    "val_acc.weight": COUNT,  # of a torchmetrics.MeanMetric
    "train_metrics.MulticlassAccuracy.tp": MANY,
    "pos_weight": MANY,
    "model.blocks.0.total_ops": torch.zeros(1, dtype=torch.float64),  # of thop
    "model.blocks.0.attn._extra_state": MANY,
}


@pytest.mark.parametrize("name", LEFT)
def test_what_training_leaves_beside_weights_is_no_weight_and_is_named(saved, plain, name):
    state = {name: LEFT[name], **below("model")}
    checkpoint = load_checkpoint(saved({"model": state}), overrides=HEADS)
    assert checkpoint.unread == (name,)


NO_HEAD = ["normalize.mean", "projector.weight", "norm.weight", "head_gate", "lossless.weight", "adapter.down.weight"]


@pytest.mark.parametrize("name", NO_HEAD)
def test_what_might_be_a_weight_is_refused_until_a_person_leaves_it_out(saved, plain, name):
    """A norm after a backbone is not the norm in it. What is unknown is never proposed to be left out."""
    path = saved({"model": {**below("net"), name: torch.ones(6, 24)}})
    assert describe_checkpoint(path, overrides=HEADS).problems == (
        f"unused: {name}. The layer that has it is not supported",
    )
    checkpoint = load_checkpoint(path, overrides=HEADS, without=[f"{name[:-1]}*"])
    assert same_weights(checkpoint.model, plain)
    assert checkpoint.overrides["without"] == f"{name[:-1]}*"


@pytest.mark.parametrize("name", ["queue", "decoder.0.weight", "predictor.0.weight", "momentum_head.1"])
def test_what_is_known_to_be_of_training_alone_is_proposed_to_be_left_out(saved, plain, name):
    path = saved({"model": {**below("net"), name: torch.ones(6, 24)}})
    with pytest.raises(CheckpointError, match="which does not read them: --without '") as refusal:
        load_checkpoint(path, overrides=HEADS)
    pattern = str(refusal.value).split("'")[1]
    assert same_weights(load_checkpoint(path, overrides=HEADS, without=[pattern]).model, plain)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("other.*", r"--without other\.\*: x\.pth has no tensor of such a name"),
        ("blocks.1.attn.qkv.bias", r"missing: blocks\.1\.attn\.qkv\.bias"),
        ("blocks.3.*", "a part of the network: depth is 4, and would be 3"),
        ("head.*", "num_classes is .*, and would be 0. --set num_classes=0"),
    ],
)
def test_a_part_of_the_network_cannot_be_left_out(saved, pattern, message):
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(saved({"model": STATE}), overrides=HEADS, without=[pattern])


OTHER = {name: tensor + 1 for name, tensor in STATE.items()}


MOMENTA = {"state": {0: {"exp_avg": torch.ones(2)}}, "param_groups": []}


@pytest.mark.parametrize(
    ("content", "chosen"),
    [
        ({"state_dict": STATE, "state_dict_ema": None, "model": {"depth": 12}}, ""),
        ({"epoch": torch.tensor(3), "loss": torch.zeros(1), "model": STATE}, ""),
        ({"model_state_dict": STATE, "optimizer_state_dict": MOMENTA}, ""),  # PyTorch's tutorial on checkpoints
        ({"net": STATE, "discriminator": {"fc.weight": MANY}}, "net; the file has discriminator too"),
        # As timm's load_state_dict with use_ema does it, and so its evaluation.
        ({"state_dict": OTHER, "state_dict_ema": STATE}, "state_dict_ema; the file has state_dict too"),
        ({"swa": OTHER, "model": STATE}, "model; the file has swa too"),
        ({"state_dict": STATE, "callbacks": {"ema": OTHER}}, "state_dict; the file has callbacks.ema too"),
        ({**STATE, "shadow": OTHER}, ".; the file has shadow too"),
        ({"encoder": OTHER, "target_encoder": STATE, "prototypes": MANY}, "target_encoder; the file has encoder too"),
    ],
)
def test_of_several_state_dicts_one_is_loaded_and_others_are_named_and_can_be_chosen(saved, content, chosen):
    path = saved(content)
    source = Source(path)
    assert source.chosen == chosen
    assert torch.equal(source.tensors()["norm.bias"], STATE["norm.bias"])
    for other in re.findall(r"has (?!discriminator)(\S+) too", chosen):
        assert torch.equal(Source(path, weights=other).tensors()["norm.bias"], OTHER["norm.bias"])


@pytest.mark.parametrize("first", ["online", "a.backbone", "model"])
def test_a_person_is_asked_which_of_two_networks_is_meant(saved, plain, first):
    second = first.replace("a.", "teacher.").replace("online", "target").replace("model", "ema")
    beside = {f"{second.partition('.')[0]}.center": MANY}
    path = saved({"model": {**below(first), **below(second, OTHER), **beside}})
    example = f"model.{second if 'teacher' in second else min(first, second)}"
    places = f"model.{first}, model.{second}" if first < second else f"model.{second}, model.{first}"
    with pytest.raises(CheckpointError, match=f"several networks, {places}: choose one, .*--set weights={example}"):
        describe_checkpoint(path, overrides=HEADS)
    checkpoint = load_checkpoint(path, overrides={**HEADS, "weights": f"model.{first}"})
    assert same_weights(checkpoint.model, plain)
    assert checkpoint.weights == f"model.{first}; the file has model.{second} too"
    assert checkpoint.overrides["weights"] == f"model.{first}"
    with pytest.raises(CheckpointError, match=f"--set weights=x: x.pth has {places}"):
        describe_checkpoint(path, overrides={**HEADS, "weights": "x"})


def test_the_network_in_a_loss_is_not_the_model(saved, plain):
    """A teacher that a loss holds, as DeiT's DistillationLoss would."""
    state = {**below("model"), **below("criterion.teacher", OTHER)}
    assert same_weights(load_checkpoint(saved({"model": state}), overrides=HEADS).model, plain)


def test_empty_tensors_are_dropped():
    place, tensors = state_of(GOLDEN / "timm-plain")
    empty = {"register_tokens": next(iter(tensors.values()))._replace(shape=(1, 0, 24))}
    assert take({place: {**tensors, **empty}}, file="x", weights=None).tensors.keys() == tensors.keys()


@pytest.mark.parametrize("kept", [lambda _: False, lambda name: name != "head.weight", lambda name: "norm" in name])
def test_what_zero_3_leaves_is_named(saved, kept):
    """Each rank of DeepSpeed holds a part of every weight, so that the module's own are empty."""
    state = {name: tensor if kept(name) else torch.zeros(0) for name, tensor in STATE.items()}
    with pytest.raises(CheckpointError, match=r"has \d+ empty tensors, .*weight.* ZeRO-3 .*zero_to_fp32\.py"):
        Source(saved(state))


def test_a_file_that_refers_to_itself_ends(saved):
    content = {"model": STATE}
    content["self"] = content
    assert "norm.bias" in Source(saved(content)).names


def test_a_normalisation_in_the_model_is_named_with_its_numbers(saved, plain):
    """nn.Sequential(Normalize(mean, std), model), whose buffers may be in the file (locuslab/smoothing #12)."""

    def load(state, **overrides):
        return load_checkpoint(saved({"model": state}), overrides=HEADS | overrides)

    pixels = {"0.mean": torch.tensor([0.1, 0.2, 0.3]).view(1, 3, 1, 1), "0.std": torch.tensor([0.5])}
    with pytest.raises(CheckpointError, match=r"mean=0\.1,0\.2,0\.3 --set std=0\.5,0\.5,0\.5 --without '0\.mean'"):
        load(pixels | below("1"))
    pixels = {"pixel_mean": torch.tensor([127.5, 51, 255]), "pixel_std": torch.full((3,), 51)}
    with pytest.raises(CheckpointError, match=r"from 0 to 255, give --set mean=0\.5,0\.2,1 --set std=0\.2,0\.2,0\.2 "):
        load(pixels | below("net"))
    no_trace = load(below("1"))
    assert same_weights(no_trace.model, plain)
    assert "part 1 of an nn.Sequential" in no_trace.advice
    other = load(below("1"), mean="0.1,0.2,0.3"), load(below("0")), load(below("1") | below("0"), weights="model.1")
    assert not any("Sequential" in one.advice for one in other)
