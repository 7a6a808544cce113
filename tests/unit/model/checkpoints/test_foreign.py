"""model/checkpoints/foreign.py and values.py: what people give in place of a checkpoint is called what it is."""

import io
import re
import sys
import types
import zipfile

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.load import describe_checkpoint
from tests.support.altered import GOLDEN, altered, stated, with_more
from tests.support.runs import same_weights

LORA = b'{"peft_type": "LORA"}'
CLASS_TOKEN = "vit.embeddings.cls_token"
HDF5 = b"\x89HDF\r\n\x1a\n" + bytes(40)
LAYER = "vit.encoder.layer.0.attention.attention.query"


def zipped(*members):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name in members:
            archive.writestr(name, "{}")
    return content.getvalue()


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("model.safetensors", b"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS, "),
        ("model.safetensors", b"<!DOCTYPE html>\n<html><title>Log in", "text, .* /resolve/ where .* /blob/"),
        ("model.xml", b'<?xml version="1.0"?>\n<net name="main" version="11">', "a model of another program"),
        ("config.json", b'{\n  "model_type": "vit"\n}', "text, .* the folder that it is in"),
        ("model.pth", bytes(5000), "nothing but zeros: copy or download it again"),
        ("tf_model.h5", HDF5, "a file of TensorFlow, .* from_tf=True"),
        ("model.onnx", b"\x08\x0a\x12\x07pytorch", "a model of another program"),
        ("vit.pt2", zipped("vit/archive_format", "vit/models/model.json"), r"a program of torch\.exp"),
        ("vit.zip", zipped("vit/config.json", "vit/model.safetensors"), "an archive: unpack it"),
        ("zero_pp_rank_0_mp_rank_00_model_states.pt", b"\x80\x02}q\x00.", "of DeepSpeed, "),
    ],
)
def test_a_file_that_cannot_be_a_checkpoint(tmp_path, file, content, message):
    (tmp_path / file).write_bytes(content)
    with pytest.raises(CheckpointError, match=f"^{file} is {message}"):
        load_checkpoint(tmp_path / file)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"adapter_config.json": LORA, "adapter_model.safetensors": b""}, r"an adapter: .* merge_and_unload\(\)"),
        ({"checkpoint-5/adapter_config.json": LORA, "checkpoint-5/adapter_model.bin": b""}, "an adapter"),
        ({"config.json": b"{}", "tf_model.h5": HDF5}, "tf_model.h5 in .* a file of TensorFlow"),
        ({"vit.mlpackage/Manifest.json": b""}, "a model of another program"),
        ({"zero_to_fp32.py": b"", "latest": b"", "global_step9/mp_rank_00_model_states.pt": b""}, "of DeepSpeed"),
        ({"__0_0.distcp": b"", ".metadata": b""}, r"torch\.distributed .* dcp_to_torch"),
        ({"notes.txt": b"", "config.json": b""}, r"no weights, such as .*\. It has config\.json, notes\.txt$"),
        ({}, "no weights, such as .*: it is empty$"),
    ],
)
def test_a_folder_that_is_no_checkpoint(tmp_path, files, message):
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    with pytest.raises(CheckpointError, match=message) as refusal:
        load_checkpoint(tmp_path)
    assert str(tmp_path) in str(refusal.value)


CODES = {name: getattr(torch, name) for name in ("int8", "uint8", "int32", "int64")}
CODES["float8_e8m0"] = torch.float8_e8m0fnu


@pytest.mark.parametrize(
    ("more", "keys", "message"),
    [
        ({f"base_model.model.{LAYER}.lora_A.weight": torch.ones(2, 24)}, {}, "an adapter: load it with PEFT"),
        ({f"{LAYER}.base_layer.weight": torch.ones(24, 24)}, {}, "a model of PEFT with an adapter that is not merged"),
        ({f"{LAYER}.SCB": torch.ones(24)}, {}, "quantised: give the model that it was made of"),  # bitsandbytes, 8 bits
        ({}, {"quantization_config": {"quant_method": "gptq", "bits": 4}}, "is quantised: give"),
        *(
            (
                {f"{LAYER}.weight": torch.ones(24, 24).to(dtype)},
                {},
                rf"{LAYER}\.weight has numbers of .* {name}, is qua",
            )
            for name, dtype in CODES.items()
        ),
    ],
)
def test_tensors_that_are_not_the_weights_themselves(tmp_path, more, keys, message):
    """`inspect` says it too: it reads names, types and JSON."""
    folder = altered("huggingface-vit", tmp_path, tensors=with_more(more), **keys)
    for read in (load_checkpoint, describe_checkpoint):
        with pytest.raises(CheckpointError, match=message):
            read(folder)


@pytest.mark.parametrize("dtype", [torch.int32, torch.bool, torch.complex64])
def test_no_part_of_the_network_is_of_integers(tmp_path, dtype):
    folder = altered("huggingface-vit", tmp_path, tensors=with_more({CLASS_TOKEN: torch.ones(1, 1, 24, dtype=dtype)}))
    kind = str(dtype).removeprefix("torch.")
    with pytest.raises(CheckpointError, match=rf"^model\.safetensors has numbers of the type {kind} in "):
        load_checkpoint(folder)


FLOATS = [torch.float16, torch.bfloat16, torch.float64, torch.float8_e4m3fn, torch.float8_e5m2]


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_of_every_width_are_weights(tmp_path, dtype):
    def narrowed(state, of=torch.float32):
        return {name: tensor.to(dtype).to(of) for name, tensor in state.items()}

    folder = altered("huggingface-vit", tmp_path, tensors=lambda state: narrowed(state, dtype))
    expected = altered("huggingface-vit", tmp_path / "wide", tensors=narrowed)
    assert same_weights(load_checkpoint(folder).model, load_checkpoint(expected).model)


def test_a_pickle_with_quantised_tensors_of_a_library(saved, monkeypatch):
    module = types.ModuleType("torchao.dtypes")
    module.AffineQuantizedTensor = type("AffineQuantizedTensor", (), {"__module__": "torchao.dtypes"})
    for name in ("torchao", "torchao.dtypes"):
        monkeypatch.setitem(sys.modules, name, module)
    with pytest.raises(CheckpointError, match=r"^x\.pth is quantised: give the model"):
        load_checkpoint(saved({"head.weight": module.AffineQuantizedTensor()}))


def filled(name, value):
    """The last number of a tensor is changed."""

    def change(state):
        state[name].reshape(-1)[-1] = value
        return state

    return change


NAN, INFINITE = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("case", "name", "value"),
    [
        ("huggingface-vit", f"{LAYER}.weight", NAN),  # becomes a part of another tensor
        ("huggingface-vit", "classifier.bias", INFINITE),
        ("huggingface-beit", "beit.encoder.layer.1.lambda_1", NAN),
        ("google-vit-jax", "Transformer/encoderblock_1/MlpBlock_3/Dense_0/kernel", NAN),
        ("openclip-quickgelu", "visual.proj", NAN),
    ],
)
def test_a_number_that_is_not_finite_is_named_by_its_tensor(tmp_path, case, name, value):
    folder = altered(case, tmp_path, tensors=filled(name, value))
    with pytest.raises(CheckpointError, match=f"has NaN or infinite numbers in {name}. Training has diverged"):
        load_checkpoint(folder, overrides=stated(case))
    if name.startswith("classifier"):
        load_checkpoint(folder, overrides={"num_classes": "0"})


def test_numbers_that_are_not_finite_are_counted_and_large_ones_are_none_of_them(tmp_path):
    all_of_them = altered("huggingface-vit", tmp_path, tensors=lambda state: {n: t * NAN for n, t in state.items()})
    with pytest.raises(CheckpointError, match=r" and in \d\d more tensors\. "):
        load_checkpoint(all_of_them)
    largest = filled(f"{LAYER}.bias", torch.finfo().max)
    load_checkpoint(altered("huggingface-vit", tmp_path / "large", tensors=largest))


MATRIX = "blocks.0.mlp.fc1.weight"
PATCHES = "patch_embed.proj.weight"
SWEPT = "module.classifiers_dict.classifier_4_blocks_avgpool_True_lr_0_00050.linear.weight"


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (MATRIX, torch.Tensor.to_sparse, "of sparse tensors: save each as"),
        (MATRIX, lambda t: t.to("meta"), "without the values of its weights: .* not from the device meta"),
        (MATRIX, lambda t: torch.nested.nested_tensor([t, t[:1]]), "of nested tensors"),
        (MATRIX, lambda t: t > 0, "not made of floating-point numbers: save it with these"),
        ("blocks.0._fsdp_wrapped_module._flat_param", torch.ravel, "of FSDP, .*save .*FULL_STATE_DICT"),
        (SWEPT, lambda t: t, r"of the evaluation of DINOv2 .* results_eval_linear\.json names the best"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*nested tensors:UserWarning")
def test_tensors_that_are_no_weights_are_called_what_they_are(saved, name, change, message):
    state = load_file(GOLDEN / "timm-plain/model.safetensors")
    with pytest.raises(CheckpointError, match=f"{re.escape(name)}.* is {message}"):
        load_checkpoint(saved(state | {name: change(state[MATRIX])}))


@pytest.mark.parametrize("axes", [(0, 1, 4, 2, 3), (0, 2, 3, 1), (2, 3, 1, 0)])
def test_patches_of_a_video_and_axes_in_another_order_are_named(saved, axes):
    state = load_file(GOLDEN / "timm-plain/model.safetensors")
    patches = state[PATCHES][(..., *[None] * (len(axes) - 4))].permute(axes).contiguous()
    with pytest.raises(CheckpointError, match=r"of patch_embed\.proj\.weight: supported are patches of an image"):
        load_checkpoint(saved(state | {PATCHES: patches}))


@pytest.mark.parametrize("wrapped", [lambda arrays: arrays, lambda arrays: {"model": arrays, "epoch": 3}])
def test_arrays_in_a_pickle_are_named(saved, wrapped):
    with pytest.raises(CheckpointError, match=r"x\.pth holds NumPy's arrays .* numpy\.savez"):
        load_checkpoint(saved(wrapped({"head.weight": np.ones((6, 24), np.float32)})))
