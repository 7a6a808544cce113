"""app/inference/packed.py: a folder of the cache is made once, is whole or not there, and is checked."""

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from app.bundle import load_bundle
from app.inference import packed
from app.inference.cpu import FILES, RUNTIME, OnnxEngine, pack
from app.inference.gears import Gears
from app.inference.packed import CHECKSUMS, MAKING, UNUSED_S, DamagedWeights, PackedWeights, cache_folder
from app.settings import DEMO_BUNDLE


def weights_in(cache, *, bundle=None, runtime=RUNTIME) -> PackedWeights:
    return PackedWeights(cache=cache, bundle=bundle or load_bundle(DEMO_BUNDLE), runtime=runtime)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Packed once for all tests that change nothing."""
    weights = weights_in(tmp_path_factory.mktemp("cache"))
    assert weights.find(pack)
    return weights


@pytest.fixture
def copy(made, tmp_path):
    """A copy to damage."""
    weights = weights_in(tmp_path)
    weights.folder.mkdir()
    for file in made.folder.iterdir():
        (weights.folder / file.name).write_bytes(file.read_bytes())
    return weights


def never(graph, packed_graph):
    raise AssertionError("it is there already")


@pytest.mark.parametrize("graph", FILES)
@pytest.mark.parametrize("gear", ["wide", "narrow"])
def test_packed_weights_give_the_same_numbers_bit_for_bit(made, graph, gear):
    images = np.random.default_rng(0).integers(0, 256, (3, 64, 64, 3), dtype=np.uint8)
    gears = Gears(cores=2, lanes=2)
    expected = OnnxEngine(folder=DEMO_BUNDLE, image_size=(64, 64), gears=gears).run(graph, images, gear)
    found = OnnxEngine(folder=made.folder, image_size=(64, 64), gears=gears, packed=True).run(graph, images, gear)
    assert found.keys() == expected.keys()
    assert all(np.array_equal(found[name], expected[name]) for name in expected)


def test_each_weight_is_there_once_plain_and_packed(made):
    plain = (DEMO_BUNDLE / "weights.bin").stat().st_size
    assert plain < (made.folder / "weights.bin").stat().st_size < 2.5 * plain
    assert {file.name for file in made.folder.iterdir()} == {*FILES.values(), "weights.bin", CHECKSUMS}
    made.check_graphs()
    made.check()


def test_what_is_there_is_not_made_again(made):
    assert weights_in(made.folder.parent).find(never)
    assert [folder.name for folder in made.folder.parent.iterdir()] == [made.folder.name]


@pytest.mark.parametrize("other", ["a bundle", "a runtime", "a processor"])
def test_what_was_packed_for_another_is_not_found(made, monkeypatch, other):
    options = {}
    if other == "a bundle":
        options["bundle"] = load_bundle(DEMO_BUNDLE)
        options["bundle"].digest = "f" * 64
    elif other == "a runtime":
        options["runtime"] = "onnxruntime 9.9.9"
    else:
        monkeypatch.setattr(packed, "processor", lambda: "flags : none")
    weights = weights_in(made.folder.parent, **options)
    assert weights.folder != made.folder
    assert not (weights.folder).exists()


@pytest.mark.parametrize("name", [*FILES.values(), "weights.bin"])
def test_one_byte_that_was_altered_is_found(copy, name):
    file = copy.folder / name
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(DamagedWeights, match=name):
        copy.check()
    if name != "weights.bin":
        with pytest.raises(DamagedWeights, match=name):
            copy.check_graphs()


def test_a_file_that_is_too_short_is_found_before_it_is_mapped(copy):
    os.truncate(copy.folder / "weights.bin", 4096)
    with pytest.raises(DamagedWeights, match=r"weights\.bin"):
        copy.check_graphs()


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"classify.onnx": 1}', "\0" * 100])
def test_checksums_that_say_nothing_are_found(copy, text):
    (copy.folder / CHECKSUMS).write_text(text)
    with pytest.raises(DamagedWeights):
        copy.check_graphs()


def test_a_missing_file_is_found(copy):
    (copy.folder / "weights.bin").unlink()
    with pytest.raises(OSError, match=r"weights\.bin"):
        copy.check_graphs()


def test_a_folder_that_was_half_removed_is_made_again(copy):
    (copy.folder / CHECKSUMS).unlink()
    assert copy.find(pack)
    copy.check()


def test_of_replicas_that_make_it_at_once_all_find_one(tmp_path):
    both = threading.Barrier(2)

    def slowly(graph, packed_graph):
        both.wait(20)  # neither has a name for its folder yet
        pack(graph, packed_graph)

    replicas = [weights_in(tmp_path), weights_in(tmp_path)]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda replica: replica.find(slowly), replicas)) == [True, True]
    assert [folder.name for folder in tmp_path.iterdir()] == [replicas[0].folder.name]
    replicas[0].check()


def test_a_maker_that_fails_leaves_nothing(tmp_path, caplog):
    def full(graph, packed_graph):
        packed_graph.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    with caplog.at_level("INFO"):
        assert not weights_in(tmp_path).find(full)
    assert list(tmp_path.iterdir()) == []
    assert "the weights are not packed: [Errno 28] No space left on device" in caplog.text


def test_damaged_weights_of_a_bundle_are_not_packed(tmp_path):
    folder = tmp_path / "bundle"
    folder.mkdir()
    for file in DEMO_BUNDLE.rglob("*"):
        if file.is_file():
            target = folder / file.relative_to(DEMO_BUNDLE)
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(file.read_bytes())
    data = bytearray((folder / "weights.bin").read_bytes())
    data[1000] ^= 1
    (folder / "weights.bin").write_bytes(data)
    weights = weights_in(tmp_path / "cache", bundle=load_bundle(folder))
    assert not weights.find(never)


def test_where_nothing_can_be_written_nothing_is_packed(tmp_path):
    (tmp_path / "file").write_text("no folder")
    assert not weights_in(tmp_path / "file" / "cache").find(never)


def test_what_nobody_used_for_a_month_is_removed_and_nothing_else(tmp_path):
    old = time.time() - UNUSED_S - 60
    names = {"0" * 32: True, MAKING + "abc": True, "1" * 32: False, "photos": False, "z" * 32: False}
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("")
        os.utime(tmp_path / name, (old, old))
    os.utime(tmp_path / ("1" * 32))
    weights = weights_in(tmp_path)
    assert weights.find(pack)
    left = {folder.name for folder in tmp_path.iterdir()}
    assert left == {weights.folder.name, *(name for name, removed in names.items() if not removed)}


def test_using_it_keeps_it(copy):
    os.utime(copy.folder, (0, 0))
    assert copy.find(never)
    assert copy.folder.stat().st_mtime > time.time() - 60


def test_the_cache_is_where_the_setting_says(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder("auto") == tmp_path / "vit-serve"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert str(cache_folder("auto")) == "/home/somebody/.cache/vit-serve"
    assert str(cache_folder("/srv/cache")) == "/srv/cache"
    assert cache_folder("off") is None


def test_checksums_are_of_the_files(made):
    listed = json.loads((made.folder / CHECKSUMS).read_text())
    assert {name: size for name, (size, _) in listed.items()} == {
        name: (made.folder / name).stat().st_size for name in (*FILES.values(), "weights.bin")
    }
