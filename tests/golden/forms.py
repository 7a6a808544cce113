"""Whether a network loads from each form in which libraries and training scripts save it, with its library's numbers.

`python -m tests.golden.forms` writes the table of docs/checkpoints.md, and tests/test_docs.py compares it.
"""

import json
import re
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import CheckpointError
from tests.golden.test_checkpoints import FOLDER, TOLERANCE, overrides_of, path_of
from tests.support.altered import with_more

PAGE = Path("docs/checkpoints.md")
HUB, LONE, NPZ = (FOLDER / name for name in ("huggingface-vit", "timm-lone", "google-vit-jax"))

State = dict[str, Tensor]
Write = Callable[[Path], Path | str]  # into an empty folder; gives what --checkpoint is


class Form(NamedTuple):
    words: str
    case: Path  # of whose network
    write: Write


@cache
def state_of(case: Path) -> State:
    if case == HUB:
        return load_file(case / "model.safetensors")
    wrapped = torch.load(path_of(case), weights_only=True)["state_dict"]
    return {name.removeprefix("module."): tensor for name, tensor in wrapped.items()}


def lone(words: str, content: Callable[[State], Any], **how: Any) -> Form:
    """A file of PyTorch with what `content` makes of a state dict."""

    def write(folder: Path) -> Path:
        torch.save(content(dict(state_of(LONE))), folder / "x.pth", **how)
        return folder / "x.pth"

    return Form(words, LONE, write)


def hub(words: str, save: Callable[[Path, State], object], **config: Any) -> Form:
    """A folder of transformers with keys added to its configuration, in which `save` writes the weights."""

    def write(folder: Path) -> Path:
        shutil.copytree(HUB, folder, ignore=shutil.ignore_patterns("*.safetensors", "*.npz"), dirs_exist_ok=True)
        stated = json.loads((folder / "config.json").read_text()) | config
        (folder / "config.json").write_text(json.dumps(stated))
        save(folder, dict(state_of(HUB)))
        return folder

    return Form(words, HUB, write)


def safetensors(folder: Path, state: State) -> None:
    save_file(state, folder / "model.safetensors")


def in_bin(folder: Path, state: State) -> None:
    torch.save(state, folder / "pytorch_model.bin")


def shards(ending: str, save: Callable[[State, Path], object]) -> Callable[[Path, State], None]:
    def write(folder: Path, state: State) -> None:
        stem, _, kind = ending.partition(".")
        files = {name: f"{stem}-0000{1 + at % 2}-of-00002.{kind}" for at, name in enumerate(state)}
        for file in set(files.values()):
            save({name: state[name] for name in state if files[name] == file}, folder / file)
        (folder / f"{ending}.index.json").write_text(json.dumps({"metadata": {}, "weight_map": files}))

    return write


def adapter(folder: Path, state: State) -> None:
    pairs = {f"base_model.model.vit.x.lora_{which}.weight": torch.ones(2, 2) for which in "AB"}
    save_file(pairs, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA"}))
    (folder / "config.json").unlink()


def other_framework(name: str) -> Callable[[Path, State], object]:
    return lambda folder, state: (folder / name).write_bytes(b"\x81\xa3vit\x80")


def one_level_down(folder: Path, state: State) -> None:
    (folder / "checkpoint-500").mkdir()
    safetensors(folder / "checkpoint-500", state)
    for name in ("config.json", "preprocessor_config.json"):
        (folder / name).rename(folder / "checkpoint-500" / name)


def file_of(name: str, content: bytes) -> Write:
    def write(folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return write


def alone(folder: Path) -> Path:
    save_file(state_of(LONE), folder / "x.safetensors")
    return folder / "x.safetensors"


def cut(folder: Path) -> Path:
    path = alone(folder)
    path.write_bytes(path.read_bytes()[:5000])
    return path


def below(prefix: str) -> Callable[[State], State]:
    return lambda state: {prefix + name: tensor for name, tensor in state.items()}


def head_below(prefix: str) -> Callable[[State], State]:
    return lambda state: {re.sub(r"^head\.", prefix, name): tensor for name, tensor in state.items()}


def with_hidden_layer(state: State) -> State:
    hidden = {"head.0.weight": torch.eye(24), "head.0.bias": torch.zeros(24)}
    return hidden | head_below("head.2.")(state)


def averaged(state: State) -> dict[str, Any]:
    worse = {name: tensor + 1 for name, tensor in state.items()}
    return {"state_dict": worse, "state_dict_ema": state, "optimizer": {"state": {}}, "metric": np.float64(71.2)}


def whole(state: State) -> nn.Module:
    return nn.Sequential(nn.Linear(2, 2))


def forms() -> list[Form]:
    return [
        hub("transformers: folder, `model.safetensors`", safetensors),
        hub("`pytorch_model.bin`", in_bin),
        hub("shards, `model.safetensors.index.json`", shards("model.safetensors", save_file)),
        hub("shards, `pytorch_model.bin.index.json`", shards("pytorch_model.bin", torch.save)),
        hub("a Trainer's folder, `checkpoint-500` in it", one_level_down),
        hub("an adapter (PEFT, LoRA)", adapter),
        hub("`quantization_config` in `config.json`", safetensors, quantization_config={"load_in_8bit": True}),
        hub("`tf_model.h5`", other_framework("tf_model.h5")),
        hub("`flax_model.msgpack`", other_framework("flax_model.msgpack")),
        Form("Google: `.npz`", NPZ, lambda folder: path_of(NPZ)),
        Form("timm: one file, `.safetensors`", LONE, alone),
        lone("`.pth`, state dict", dict),
        lone("`{'model': …, 'epoch': …}`", lambda state: {"model": state, "epoch": 3}),
        lone("`state_dict_ema` beside `state_dict`", averaged),
        lone("names below `module._orig_mod.`", below("module._orig_mod.")),
        lone("names below `student.backbone.`", below("student.backbone.")),
        lone(
            "`criterion.weight`, `n_averaged` beside",
            with_more({"criterion.weight": torch.ones(5), "n_averaged": torch.tensor(7)}),
        ),
        lone("another tensor beside", with_more({"extra.weight": torch.ones(3)})),
        lone("head in `nn.Sequential` (`head.1.weight`)", head_below("head.1.")),
        lone("head of two layers", with_hidden_layer),
        lone("head of zeros", with_more({"head.weight": torch.zeros(5, 24), "head.bias": torch.zeros(5)})),
        lone("NaN in a tensor", with_more({"norm.weight": torch.full((24,), torch.nan)})),
        lone(
            "integers without scales",
            lambda state: state | {"blocks.0.mlp.fc1.weight": state["blocks.0.mlp.fc1.weight"].to(torch.int8)},
        ),
        lone("`torch.save(model)`", whole),
        Form("a file that is cut off", LONE, cut),
        Form("a pointer of Git LFS", LONE, file_of("x.safetensors", b"version https://git-lfs.github.com/spec/v1\n")),
    ]


def loads(form: Form) -> bool:
    """Or is refused. Raises AssertionError for other numbers than the library's."""
    expected = np.load(form.case / "expected.npz")
    with TemporaryDirectory() as folder:
        try:
            checkpoint = load_checkpoint(form.write(Path(folder)), overrides=overrides_of(form.case))
        except CheckpointError:
            return False
        height, width = checkpoint.preprocessing.size
        with torch.inference_mode():
            found = checkpoint.model(torch.from_numpy(expected["pixels"][None, :, :height, :width]))[0].numpy()
    apart = np.abs(found - expected["logits"]).max() / np.abs(expected["logits"]).max()
    assert apart <= TOLERANCE, f"{form.words}: {apart:.0e} from the library's numbers"
    return True


def table() -> str:
    """A row of the forms that load, and one of those that are refused."""
    loading: dict[bool, list[str]] = {True: [], False: []}
    for form in forms():
        loading[loads(form)].append(form.words)
    rows = [f"| {'; '.join(loading[does])} | {happens} |" for does, happens in ((True, "load"), (False, "are refused"))]
    return "\n".join(["| forms | what happens |", "| --- | --- |", *rows])


if __name__ == "__main__":
    text = PAGE.read_text()
    block = re.compile(r"(?<=<!-- forms -->\n).*?(?=\n<!-- /forms -->)", re.DOTALL)
    PAGE.write_text(block.sub(lambda _: table(), text))
