"""model/fit/snapshot.py: a file that is whole or not there, and that belongs to one run."""

from dataclasses import replace

import pytest
import torch

import model.fit.snapshot
from model.fit.samples import Samples
from model.fit.snapshot import SAMPLED, Snapshot, digest_of_samples
from tests.support.disk import room_for
from tests.support.samples import squares

STATE = {"step": 3, "loss": 0.1, "weights": {"a": torch.arange(5.0)}, "history": [{"step": 1}]}


def test_saved_values_come_back(tmp_path):
    snapshot = Snapshot(tmp_path / "work", "run", identity={"seed": 0, "rates": (0.1, 0.2)})
    assert snapshot.load() is None
    snapshot.save(STATE)
    loaded = Snapshot(tmp_path / "work", "run", identity={"seed": 0, "rates": (0.1, 0.2)}).load()
    assert torch.equal(loaded.pop("weights")["a"], STATE["weights"]["a"])
    assert loaded == {name: value for name, value in STATE.items() if name != "weights"}
    assert list((tmp_path / "work").iterdir()) == [tmp_path / "work" / "run.pt"]


@pytest.mark.parametrize("left", [0, 100, -1])
def test_a_file_that_cannot_be_read_is_named(tmp_path, left):
    snapshot = Snapshot(tmp_path, "run", identity={})
    snapshot.save(STATE)
    (tmp_path / "run.pt").write_bytes((tmp_path / "run.pt").read_bytes()[:left])
    with pytest.raises(ValueError, match=r"run\.pt cannot be read: remove it to begin anew"):
        snapshot.load()


def test_a_snapshot_is_due_after_a_while(tmp_path, monkeypatch):
    snapshot = Snapshot(tmp_path, "run", identity={})
    assert not snapshot.due
    monkeypatch.setattr(model.fit.snapshot, "EVERY_S", 0)
    assert snapshot.due


def test_without_room_the_last_snapshot_stays(tmp_path):
    snapshot = Snapshot(tmp_path, "run", identity={})
    snapshot.save({"step": 1})
    with room_for(100_000), pytest.warns(UserWarning, match="could not be written, and the run goes on"):
        snapshot.save({"step": 2, "weights": torch.zeros(100_000)})
    assert snapshot.load() == {"step": 1}
    assert list(tmp_path.iterdir()) == [tmp_path / "run.pt"]


def test_different_samples_have_different_digests():
    samples = squares(600)
    digest = digest_of_samples(samples)
    assert digest == digest_of_samples(squares(600))
    assert digest != digest_of_samples(squares(600, seed=1))
    assert digest != digest_of_samples(Samples(pixels=samples.pixels, classes=samples.classes.flip(0)))
    assert digest != digest_of_samples(Samples(pixels=samples.pixels[1:], classes=samples.classes[:-1]))
    assert digest != digest_of_samples(replace(samples, digest="of other files"))
    assert digest_of_samples(None) != digest_of_samples(squares(3))
    assert len(samples) > SAMPLED
