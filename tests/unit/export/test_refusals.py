"""export/refusals.py: what a command refuses at once, which is before PyTorch and its own libraries are imported."""

import json
import subprocess
import sys
from typing import get_args

import pytest

from app import bundle
from export.arguments import METHODS, PRECISIONS
from export.fit.methods import RECIPES
from export.place import MANIFEST

TOY = "model/demo/shapes.safetensors"
# Commands, and how each is refused.
REFUSED = [
    ("--checkpoint nowhere.npz --out {tmp}/free", "not exported: nowhere.npz does not exist"),
    ("--checkpoint app/demo --out {tmp}/free", "not exported: app/demo is a bundle, so it is exported already"),
    ("--checkpoint {tmp}/empty --out {tmp}/free", "not exported: {tmp}/empty has no weights"),
    ("--checkpoint {toy} --out app/demo", "not exported: app/demo exists; --replace replaces it"),
    ("--checkpoint {toy} --out {tmp} --replace", "not exported: {tmp} exists and is not a bundle, so it stays"),
    ("--checkpoint {toy} --out {toy}", "not exported: {toy} exists and is not a bundle, so it stays as it is"),
    ("--checkpoint {toy} --out {toy}/a", "not exported: {toy} is not a folder, so {toy}/a cannot be in it"),
    ("--checkpoint {toy} --out . --replace", "not exported: --out .: give the name of a folder to write"),
    ("{export} --labels none.txt", "not exported: none.txt cannot be read as labels: No such"),
    ("{export} --labels none --prompt cat", 'not exported: --prompt "cat" has no {{}} in place'),
    ("{export} --prompt {{}}", "not exported: --prompt TEXT is for CLIP and SigLIP, and needs "),
    ("{export} --pictures {tmp}/no", "not exported: --pictures {tmp}/no: this does not exist"),
    ("{export} --calibrate", "not exported: --calibrate needs labelled images: --pictures"),
    ("{export} --calibrate --pictures {tmp} --set num_classes=0", "not exported: --calibrate: --set num_classes=0 le"),
    ("{export} --set heads=3 --set heads=4", "not exported: --set heads: it is given twice"),
    ("--checkpoint no --out app/demo", "not exported: app/demo exists; --replace replaces it; no does not exist"),
    ("{export} --image-size 1x2x3", "argument --image-size: invalid image_size value: '1x2x3'"),
    ("{export} --set heads", "argument --set: 'heads' is not NAME=VALUE, such as heads=12."),
    ("inspect nowhere.npz", "not inspected: nowhere.npz does not exist"),
    ("fit {toy} --images {tmp}/no --out {tmp}/a.safetensors", "not learned: --images {tmp}/no: this does not exist"),
    ("fit {toy} --images {tmp}/empty --out {tmp}/a.pth", "not learned: --out {tmp}/a.pth: the name must"),
    ("fit {toy} --images {tmp} --out {tmp}/a.safetensors", "not learned: --out {tmp}/a.safetensors: it lies am"),
    ("fit {toy} --images {tmp}/empty --out {toy}", "not learned: {toy} exists; --replace replaces it"),
    ("fit {toy} --images {tmp}/empty --out {tmp}/kept.safetensors", "not learned: {tmp}/kept.report exists; --rep"),
    ("fit {toy} --images {tmp}/kept.report --out {tmp}/kept.safetensors --replace", "not learned: --images {tmp}/kept"),
    ("fit {toy} --images {tmp}/empty --out {tmp}/folder.safetensors --replace", "not learned: --out {tmp}/folder"),
    ("fit {toy} {fit} --set score=sigmoid --set name=birds", "not learned: --set name, score: a learned model"),
    ("fit {fit} --method masked --from-scratch S/16 --image-size 30", "not learned: image_size (30, 30) is not"),
    ("fit {fit} --method pretrain", "not learned: --method pretrain begins with --from-scratch VARIANT, or with a"),
    ("fit {toy} {fit} --method masked --from-scratch S/16", "not learned: --method masked begins with --from"),
    ("fit {toy} {fit} --from-scratch S/16", "not learned: --method probe begins with a checkpoint: give a file"),
    ("fit {fit} --method masked --from-scratch S/16 --set mean=0,0,0", "not learned: --set: it is for facts of a ch"),
    ("fit {toy} {fit} --method finetune --positions 1-D", "not learned: --positions: it is for a network from scratch"),
]  # fmt: skip
PROGRAM = """
import json, sys
for name in ("torch", "onnx", "onnxruntime", "numpy", "pydantic", "PIL"): sys.modules[name] = None
from contextlib import redirect_stderr
from io import StringIO
from export.command import main
for arguments in json.loads(sys.stdin.read()):
    error = StringIO()
    try:
        with redirect_stderr(error):
            main(arguments)
    except SystemExit as end:
        print(json.dumps(end.code if isinstance(end.code, str) else error.getvalue()))
"""


@pytest.fixture(scope="module")
def refusals(tmp_path_factory) -> dict[str, tuple[str, str]]:
    """What each command says, and how it should begin: all in one process, without what takes long to import."""
    folder = tmp_path_factory.mktemp("refusals")
    (folder / "empty").mkdir()
    (folder / "folder.safetensors").mkdir()
    (folder / "kept.report").mkdir()
    names = {"tmp": folder, "toy": TOY, "export": f"--checkpoint {TOY} --out {folder}/free"}
    names["fit"] = f"--images {folder}/empty --out {folder}/a.safetensors"
    commands = [command.format(**names).split() for command, _ in REFUSED]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    said = [json.loads(line) for line in done.stdout.splitlines()]
    return {
        command: (sentence, refusal.format(**names)) for (command, refusal), sentence in zip(REFUSED, said, strict=True)
    }


@pytest.mark.parametrize("command", [command for command, _ in REFUSED])
def test_what_can_be_known_at_once_is_refused_before_pytorch_is_imported(refusals, command):
    said, refusal = refusals[command]
    assert said.startswith(refusal)
    assert said.rstrip().count("\n") == 0


def test_what_is_written_twice_to_be_there_at_once_is_the_same():
    assert get_args(bundle.Precision) == PRECISIONS
    assert tuple(RECIPES) == METHODS
    assert bundle.MANIFEST == MANIFEST
