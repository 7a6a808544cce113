"""model/checkpoints/pickles.py: what holds no code is let in, and all else is named and never run."""

import argparse
import builtins
import collections
import datetime
import functools
import os
import pathlib
import pickle
import types

import numpy as np
import pytest
import torch

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.pickles import load

TENSOR = torch.arange(3.0)


OF_NUMPY = [np.float64(0.5), np.float32(0.5), np.int64(3), np.bool_(True), np.dtype("f4"), np.float32]
OF_NUMPY += [np.arange(4.0).reshape(2, 2), np.array(["a", None], dtype=object)]
OF_NUMPY += [np.random.default_rng(0).bit_generator.state]
PATHS = [pathlib.Path("runs/1"), pathlib.PureWindowsPath("C:/runs"), pathlib.PurePosixPath("runs")]
COLLECTIONS = [collections.defaultdict(list, a=[1]), collections.OrderedDict(a=1), collections.Counter("abc")]
COLLECTIONS += [collections.deque([1], maxlen=3), {1, 2}, frozenset({1})]
TIMES = [datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC), datetime.date(2026, 1, 2), datetime.timedelta(seconds=3)]
SPACES = [argparse.Namespace(path=pathlib.Path("a"), rate=np.float64(1)), types.SimpleNamespace(a=1)]
OF_TORCH = [torch.device("cpu"), torch.float16, torch.Size([1, 2])]


@pytest.mark.parametrize("value", [*OF_NUMPY, *PATHS, *COLLECTIONS, *TIMES, *SPACES, *OF_TORCH], ids=repr)
@pytest.mark.parametrize("zipped", [True, False])
def test_what_holds_no_code_is_let_in(tmp_path, value, zipped):
    torch.save({"model": {"a": TENSOR}, "beside": value}, tmp_path / "x.pth", _use_new_zipfile_serialization=zipped)
    assert torch.equal(load(tmp_path / "x.pth")["model"]["a"], TENSOR)


def factory():
    raise AssertionError("was called")


class Calls:
    """Whatever it is given, when a pickle is read."""

    def __init__(self, *reduced):
        self.reduced = reduced

    def __reduce__(self):
        return self.reduced


MARK = "open('ran', 'w')"


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (Calls(os.system, ("touch ran",)), "posix.system"),
        (Calls(builtins.eval, (MARK,)), "eval"),
        (Calls(builtins.getattr, (TENSOR, "tolist")), "getattr"),
        (collections.defaultdict(factory), "test_pickles.factory"),
        (collections.defaultdict(functools.partial(eval, MARK)), "functools.partial"),
        (Calls(collections.defaultdict, (eval,)), "eval"),
        (Calls(np.load, ("ran",)), "numpy.load"),
        (Calls(argparse.Namespace, (), {"a": Calls(builtins.eval, (MARK,))}), "eval"),
        (Calls(types.SimpleNamespace, (Calls(os.system, ("touch ran",)),)), "posix.system"),
        (torch.nn.Linear(2, 2), "torch.nn.modules.linear.Linear"),
        (Calls(torch.load, ("ran",)), "torch.serialization.load"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("zipped", [True, False])
def test_code_is_named_and_never_run(tmp_path, monkeypatch, value, named, zipped):
    monkeypatch.chdir(tmp_path)
    torch.save({"model": {"a": TENSOR}, "beside": value}, "x.pth", _use_new_zipfile_serialization=zipped)
    with pytest.raises(CheckpointError, match=rf"it holds \S*({named}), which is never run.*model\.state_dict\(\)"):
        load(pathlib.Path("x.pth"))
    assert not pathlib.Path("ran").exists()


def test_stand_ins_see_what_a_file_says_and_do_nothing(tmp_path):
    """NumPy's own functions would be called with what the file says: a dtype with pointers in place of numbers."""
    forged = Calls(np.dtype, ("V8", False, True), (3, "|", None, ("a",), {"a": (np.dtype("O"), 0)}, 8, 1, 0))
    torch.save({"a": TENSOR, "beside": forged}, tmp_path / "x.pth")
    assert not isinstance(load(tmp_path / "x.pth")["beside"], np.dtype)


@pytest.mark.parametrize("tail", [b"R.", b"b.", b"\x81.", b"u.", b"s.", b"]a.", b"h\x09.", b"q\x01("])
def test_a_pickle_of_nonsense_is_one_sentence(tmp_path, tail):
    path = tmp_path / "x.pth"
    path.write_bytes(pickle.PROTO + b"\x02cnumpy\ndtype\n" + tail)
    with pytest.raises(CheckpointError, match=r"^x\.pth is "):
        load(path)
