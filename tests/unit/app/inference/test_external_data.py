"""app/inference/external_data.py on graphs made by hand, read back with ONNX's own library."""

import mmap

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from app.inference.external_data import merge


def write(folder, name, weights, prepacked=()):
    """A graph with `weights` in NAME.bin, each as large as it is, and blocks of packed bytes for the first."""
    blob, tensors = b"", []
    for number, weight in enumerate(weights):
        tensor = TensorProto(name=f"w{number}", data_type=TensorProto.UINT8, dims=[len(weight)])
        tensor.data_location = TensorProto.EXTERNAL
        places = {"location": f"{name}.bin", "offset": len(blob), "length": len(weight)}
        blob += weight
        if number == 0 and prepacked:
            blocks = []
            for block in prepacked:
                blocks.append(f"{len(blob)};{len(block)};0")
                blob += block
            places["prepacked_1"] = "|".join(["MatMul+123", *blocks])
        for key, value in places.items():
            tensor.external_data.add(key=key, value=str(value))
        tensors.append(tensor)
    node = helper.make_node("Identity", ["w0"], ["y"])
    out = helper.make_tensor_value_info("y", TensorProto.UINT8, [len(weights[0])])
    graph = helper.make_graph([node], name, [], [out], initializer=tensors)
    model = helper.make_model(graph, producer_name="made by hand")
    (folder / name).write_bytes(model.SerializeToString())
    (folder / f"{name}.bin").write_bytes(blob)
    return model


def blocks(tensor, folder):
    """The bytes of a tensor, plain and packed, and where each stands."""
    places = {entry.key: entry.value for entry in tensor.external_data}
    data = (folder / places["location"]).read_bytes()
    found = [(int(places["offset"]), int(places["length"]))]
    for key, value in places.items():
        if key.startswith("prepacked"):
            found += [tuple(map(int, place.split(";")[:2])) for place in value.split("|")[1:]]
    return [data[offset : offset + length] for offset, length in found], [offset for offset, _ in found]


def loaded(path):
    return onnx.load(path, load_external_data=False)


@pytest.fixture
def folders(tmp_path):
    source, to = tmp_path / "source", tmp_path / "to"
    source.mkdir()
    to.mkdir()
    return source, to


weights = st.lists(st.binary(min_size=1, max_size=50), min_size=1, max_size=5)


@given(a=weights, b=weights, prepacked=st.lists(st.binary(min_size=1, max_size=30), max_size=3))
def test_all_bytes_are_found_again_each_once(tmp_path_factory, a, b, prepacked):
    source, to = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("to")
    write(source, "a", a, prepacked)
    write(source, "b", b)
    merge(source, to, graphs=["a", "b"], weights="w")
    places = {}
    for name, expected in (("a", [[a[0], *prepacked], *[[w] for w in a[1:]]]), ("b", [[w] for w in b])):
        for tensor, bytes_ in zip(loaded(to / name).graph.initializer, expected, strict=True):
            found, offsets = blocks(tensor, to)
            assert found == bytes_
            for block, offset in zip(found, offsets, strict=True):
                assert offset % mmap.ALLOCATIONGRANULARITY == 0
                assert places.setdefault(block, offset) == offset
    assert {file.name for file in to.iterdir()} == {"a", "b", "w"}


def test_nothing_else_of_a_graph_changes(folders):
    source, to = folders
    before = write(source, "a", [b"weights", b"bias"], [b"packed"])
    merge(source, to, graphs=["a"], weights="w")
    after = loaded(to / "a")
    for model in (before, after):
        for tensor in model.graph.initializer:
            del tensor.external_data[:]
    assert after == before


def test_onnx_reads_the_merged_weights(folders):
    source, to = folders
    write(source, "a", [bytes(range(200)), b"bias"])
    merge(source, to, graphs=["a"], weights="w")
    first, second = onnx.load(to / "a").graph.initializer
    assert np.array_equal(onnx.numpy_helper.to_array(first), np.arange(200))
    assert second.raw_data == b"bias"


def test_small_weights_stay_in_their_graph(folders):
    source, to = folders
    model = write(source, "a", [b"outside"])
    model.graph.initializer.append(helper.make_tensor("inside", TensorProto.UINT8, [2], b"in", raw=True))
    (source / "a").write_bytes(model.SerializeToString())
    merge(source, to, graphs=["a"], weights="w")
    assert loaded(to / "a").graph.initializer[1].raw_data == b"in"
    assert (to / "w").read_bytes() == b"outside"
