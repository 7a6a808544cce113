"""model/checkpoints/labels.py: whose names the classes get, and files with names."""

import argparse
import json
import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.families.timm import IMAGENETS
from model.checkpoints.families.timm_architectures import table
from model.checkpoints.imagenet import names_of, version_of
from model.checkpoints.label_files import read
from model.checkpoints.labels import Labels, choose
from model.checkpoints.load import describe_checkpoint
from tests.support.altered import GOLDEN, google_file, hub_folder, ones, stated


def test_a_guess_of_the_classes_can_be_refused_or_replaced(tmp_path):
    """tests/golden/naming.py has the guesses in every family."""
    path, file = google_file(tmp_path, 1000), tmp_path / "mine.txt"
    guess = describe_checkpoint(path)
    assert (guess.labels[207], guess.wordnet[207]) == ("golden retriever", "n02099601")
    numbered = describe_checkpoint(path, labels="none")
    assert (numbered.labels[207], numbered.wordnet) == ("class 207", ())
    assert numbered.labels_from == "numbered, set by hand"
    file.write_text("".join(f"thing {i}\n" for i in range(1000)))
    mine = describe_checkpoint(path, labels=str(file))
    assert (mine.labels[207], mine.wordnet, mine.labels_from) == ("thing 207", (), "mine.txt")
    assert mine.labels_advice == ""
    file.write_text("owl\n" * 2 + "".join(f"thing {i}\n" for i in range(998)))
    assert describe_checkpoint(path, labels=str(file)).labels_advice == "Several classes are called owl."
    file.write_text("cat\ndog\n")
    with pytest.raises(CheckpointError, match=r"^mine\.txt has 2 labels, the model has 1,000 classes$"):
        describe_checkpoint(path, labels=str(file))


@pytest.mark.parametrize(
    ("classes", "name", "some"),
    [
        (1000, "ImageNet-1k", {0: "tench", 134: "crane bird", 207: "golden retriever", 517: "crane"}),
        (10450, "ImageNet-21k-P (Winter 2021)", {0: "benthos"}),
        (11221, "ImageNet-21k-P", {0: "benthos"}),
        (11821, "ImageNet-12k", {0: "benthos"}),
        (21841, "ImageNet-22k", {0: "organism"}),
        (21842, "ImageNet-22k in Microsoft's order", {0: "tench", 207: "golden retriever"}),
        (21843, "ImageNet-21k", {0: "organism"}),
    ],
)
def test_every_version_has_a_different_name_for_each_class(classes, name, some):
    version = version_of(classes)
    names = names_of(version.wordnet)
    assert version.name == name
    assert len(set(version.wordnet)) == len(set(names)) == classes
    assert {i: names[i] for i in some} == some


def test_a_tag_of_timm_that_does_not_fit_the_classes_is_no_guess(tmp_path):
    """Of a fine-tuned network, which has the tag of its origin."""
    config = json.loads((GOLDEN / "timm-plain/config.json").read_text())["pretrained_cfg"] | {"tag": "augreg_in21k"}
    folder = hub_folder("timm-plain", pretrained_cfg=config)(tmp_path, 6)
    described = describe_checkpoint(folder, overrides=stated("timm-plain"))
    assert described.labels_from == "numbered, as the checkpoint has no names"


def test_tags_of_timm_agree_with_the_number_of_classes():
    sizes = {classes for numbers in IMAGENETS.values() for classes in numbers}
    for name, entry in table()["architectures"].items():
        for tag, (classes, _) in entry["tags"].items():
            named = re.findall(r"in\d+k", tag)
            assert classes not in sizes or not named or classes in IMAGENETS[named[-1]], f"{name}.{tag}"


def test_wrong_names_of_timm_matter_only_where_they_are_served(tmp_path):
    folder = hub_folder("timm-plain", label_names={"0": None})(tmp_path, 3)
    reason = "label_names cannot be read: None is not a label: --labels FILE names the classes"
    with pytest.raises(CheckpointError, match=reason):
        describe_checkpoint(folder)
    assert describe_checkpoint(folder, labels="none").labels == ("class 0", "class 1", "class 2")
    assert describe_checkpoint(folder, overrides={"num_classes": "0"}).labels == ()


def test_wordnet_ids_become_names_and_are_kept(tmp_path):
    words = {"n02099601": "a golden dog", "n01440764": "a fish"}
    labels = choose(2, Labels(tuple(words), "config.json"), dataset="", given=None)
    assert labels == Labels(("golden retriever", "tench"), "config.json, as WordNet ids", tuple(words))
    folder = hub_folder("timm-plain", label_names=[*words], label_descriptions=words)(tmp_path, 2)
    described = describe_checkpoint(folder, overrides=stated("timm-plain"))
    assert (described.labels, described.wordnet) == (("a golden dog", "a fish"), tuple(words))
    assert names_of(("n99999999", "n02099601")) is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.txt", "cat\ndog, hound\nnewt\n\n"),
        ("x.names", "\ufeffcat\r\ndog, hound\r\nnewt"),
        ("x.json", '["cat", "dog, hound", "newt"]'),
        ("x.json", '{"2": "newt", "0": "cat", "1": "dog, hound"}'),
        ("x.json", '{"newt": 2, "cat": 0, "dog, hound": "1"}'),
        ("x.json", '{"0": ["n1", "cat"], "1": ["n2", "dog, hound"], "2": ["n3", "newt"]}'),
        ("x.txt", "newt # 2\ncat # 0\ndog, hound # 1\n"),
        ("x.tsv", "id\tname\n2\tnewt\n0\tcat\n1\tdog, hound\n"),
        ("x.csv", 'index,label\n2,newt\n0,cat\n1,"dog, hound"\n'),
        ("x.csv", 'Label\ncat\n"dog, hound"\nnewt\n'),
        ("x.csv", 'file,label\na,cat\nb,"dog, hound"\nc,newt\n'),
        ("x.csv", 'id,label,size\n1,cat,2\n2,"dog, hound",0\n3,newt,0\n'),
        ("x.csv", 'label, class_id\nnewt, 2.0\n"dog, hound", 1.0\ncat, 0.0\n'),
        ("x.csv", 'name,label\nnewt,2\n"dog, hound",1\ncat,0\n'),
        ("x.yaml", "path: x\nnc: 3\nnames:\n  0: cat\n  1: dog, hound\n  2: newt\n"),
        ("x.txt", "nc: 3\nnames: [cat, 'dog, hound', newt]\n"),
        ("x.yml", "- cat\n- dog, hound\n- newt\n"),
        ("x.txt", "{0: 'cat',\n 1: \"dog, hound\",\n 2: 'newt'}"),
        ("x.txt", "- cat\n- dog, hound\n- newt\n"),
        ("x.txt", "'cat',\n'dog, hound',\n'newt'"),
        ("x.json", '{"id2label": {"0": "cat", "1": "dog, hound", "2": "newt"}, "hidden_size": 3}'),
        ("x.json", '{"categories": [{"id":3,"name":"cat"}, {"id":5,"name":"dog, hound"}, {"id":9,"name":"newt"}]}'),
    ],
)
def test_files_with_labels(tmp_path, name, text):
    (tmp_path / name).write_bytes(text.encode())
    assert read(tmp_path / name) == ("cat", "dog, hound", "newt")


FORMS = [f"{{i}}{between}{{n}}" for between in (" ", "\t", ": ", ",", ";", " = ", " - ", ". ", ".0 ")]
FORMS += [f"{{n}}{between}{{i}}" for between in (" ", "\t", ": ", ",", ";", "=", " -> ")]
FORMS += ["{i}: '{n}',", "({i}) {n}", "'{n}': {i},", "{n} ({i})", "- {n}: {i}", "{n},{i}.0"]
FORMS += ['"{i}","{n}"', '"{n}" "{i}"', "class {i}: {n}", "<{i}>{n}</{i}>"]


def plain(line):
    """Without the marks around a name."""
    return "".join(filter(str.isalnum, line))


@given(
    names=st.lists(st.from_regex(r"[a-z0-9]+((, | |-|'|_|,|: )[a-z0-9]+)?", fullmatch=True), min_size=2, unique=True),
    form=st.sampled_from(FORMS),
    first=st.integers(0, 1),
    shuffle=st.randoms(use_true_random=False),
)
@settings(deadline=None)
def test_numbered_lines_in_any_order_are_read_right_or_refused(names, form, first, shuffle, tmp_path_factory):
    lines = [form.format(i=i, n=name) for i, name in enumerate(names, start=first)]
    shuffle.shuffle(lines)
    path = tmp_path_factory.getbasetemp() / "names.txt"
    path.write_text("\n".join(lines))
    try:
        found = read(path)
    except CheckpointError:
        return
    right = [{plain(name), plain(form.format(i=i, n=name))} for i, name in enumerate(names, start=first)]
    assert all(plain(label) in either for label, either in zip(found, right, strict=True)), (lines, found)


def test_labels_that_are_numbers_have_the_index_that_torchvision_gives_their_folders(tmp_path):
    """class_to_idx of ImageFolder: folders are in the order of text."""
    (tmp_path / "x.json").write_text('{"0": 0, "10": 1, "9": 2}')
    assert read(tmp_path / "x.json") == ("0", "10", "9")
    (tmp_path / "x.txt").write_text("1\n3\n2\n")
    assert read(tmp_path / "x.txt") == ("1", "3", "2")


def test_only_ends_of_lines_end_a_label(tmp_path):
    """Not the other characters at which str.splitlines splits."""
    labels = ["\u732b", "caf\u00e9\u2028noir", "a\u0085b", "page\u000cbreak", "\U0001f415 dog"]
    (tmp_path / "x.txt").write_bytes("\r\n".join(labels).encode())
    assert read(tmp_path / "x.txt") == ("\u732b", "caf\u00e9 noir", "a b", "page break", "\U0001f415 dog")
    (tmp_path / "x.csv").write_bytes(b'label\r\n"sea\r\nlion"\r\n\r\nnewt\r\n')
    assert read(tmp_path / "x.csv") == ("sea lion", "newt")


@pytest.mark.parametrize("text", ["", "\n", "\ufeff\n\n"])
def test_an_empty_file_never_fits(tmp_path, text):
    (tmp_path / "x.txt").write_text(text, encoding="utf-8")
    with pytest.raises(CheckpointError, match="has 0 labels, the model has 3 classes"):
        choose(3, Labels((), ""), dataset="", given=str(tmp_path / "x.txt"))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.txt", None, "No such file"),
        ("x.txt", b"cat\n\nnewt", "label 1 is empty"),
        ("x.txt", b"caf\xe9", "not text in UTF-8"),
        ("x.txt", b"# mine\ncat\ndog", "'# mine' may be no label but a comment"),
        ("x.txt", b"Class Name\ncat\ndog", "'Class Name' may be no label but .* the name of a column. If so, take it"),
        ("x.txt", b"index label\n0 cat\n1 dog", "'index label' has no number, which all other lines have"),
        ("x.txt", b"-1 none\n0 cat\n1 dog", "-1 is no index"),
        ("x.pbtxt", b"item {\n id: 1\n name: 'cat'\n}", "a label map in pbtxt"),
        ("x.json", b'["cat"', "Expecting"),
        ("x.json", b'{"cat": 0, "dog": 0}', "index 0 is there twice"),
        ("x.json", b'{"1": "cat", "2": "dog"}', "no label of index 0"),
        ("x.json", b'{"cat": "feline"}', "'feline' is not an index"),
        ("x.csv", b"cat\ndog\n", "its first line is cat, and no column is called label"),
        ("x.csv", b"", "its first line is empty"),
        ("x.csv", b"index,label\n0\n", "label 0 is empty"),
        ("x.csv", b"index,label\n0,great white shark, man-eater\n", "line 2 has more cells than the first line"),
        ("x.csv", b"rank,label\n1,dog\n0,cat\n2,owl\n", "not in the order of the column rank in them"),
        ("x.csv", b"id,label\n1,dog\n,cat\n", "the column id has '' in place of a number"),
        ("x.csv", b"id,class,label\n1,0,dog\n0,1,cat\n", "its columns of indices differ"),
        ("x.txt", b"2 dog\n1 cat\n", "not in the order of numbers in them"),
        ("x.txt", b"0 R 1\n1 R 0\n", "its lines have two numbers each"),
        ("x.txt", b"n02119789 1 kit_fox\nn02100735 2 English_setter\n", "in the order of their WordNet ids"),
        ("x.yaml", b"path: x\nnc: 2\ntrain: a\n", "'x' is not an index"),
        ("x.yaml", b"names: [cat", "expected ',' or"),
        ("x.yaml", b"names: [cat, no]", "False is not a label: write it in quotes"),
        ("x.json", b'{"id": 0}\n{"id": 1}\n', "it has several values, one after the other"),
        ("x.json", b'{"names": ["cat", "dog"], "classes": ["dog", "cat"]}', "names of it and classes of it differ"),
        ("x.csv", b'label\n"cat\ndog\n', "unexpected end of data"),
        ("x.json", b'{"cat": 0.7}', "0.7 is not an index"),
        ("x.json", b"[" * 100_000, "recursion"),
    ],
)
def test_files_that_are_refused_say_why(tmp_path, name, text, message):
    if text is not None:
        (tmp_path / name).write_bytes(text)
    with pytest.raises(CheckpointError, match=f"cannot be read as labels: .*{message}"):
        read(tmp_path / name)


def names_beside(folder, beside):
    state = torch.load(GOLDEN / "deit/checkpoint.pth", weights_only=True)["model"]
    torch.save({"model": state | ones("head", 1000), **beside}, folder / "x.pth")
    return describe_checkpoint(folder / "x.pth", overrides={"architecture": "DeiT", "heads": "3"})


BIRDS = [f"bird {i:03}" for i in range(1000)]
INDICES = {name: i for i, name in enumerate(BIRDS)}


@pytest.mark.parametrize(
    ("where", "beside"),
    [
        ("class_to_idx", {"class_to_idx": INDICES}),  # of ImageFolder
        ("idx_to_class", {"idx_to_class": dict(enumerate(BIRDS))}),
        ("classes", {"classes": BIRDS, "labels": [0, 1, 2]}),
        ("labels", {"labels": BIRDS, "classes": ["bird"]}),
        ("meta.CLASSES", {"meta": {"CLASSES": tuple(BIRDS)}}),
        ("hyper_parameters.class_names", {"hyper_parameters": {"class_names": BIRDS}, "categories": BIRDS}),
        ("args.classes", {"args": argparse.Namespace(classes=",".join(BIRDS))}),
        ("label_map", {"label_map": INDICES}),
    ],
)
def test_names_of_classes_beside_the_weights_are_read(tmp_path, where, beside):
    described = names_beside(tmp_path, beside)
    assert described.labels == tuple(BIRDS)
    assert described.labels_from == f"{where} of the file"
    assert described.labels_advice == ""


@pytest.mark.parametrize(
    ("where", "beside"),
    [
        ("class_to_idx", {"class_to_idx": INDICES | {"bird 007": 8}}),
        ("classes", {"classes": np.array(BIRDS)}),
        ("class_names", {"class_names": [*BIRDS[:-1], " "]}),
    ],
)
def test_classes_with_names_that_cannot_be_read_are_not_those_of_imagenet(tmp_path, where, beside):
    described = names_beside(tmp_path, beside)
    assert described.labels[:2] == ("class 0", "class 1")
    assert f"may have names of its own, in {where} of the file. --labels FILE" in described.labels_advice


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("metadata", json.dumps(BIRDS)),
        ("labels.txt", "\n".join(BIRDS)),
        ("class_names.json", json.dumps(BIRDS)),
        ("class_to_idx.json", json.dumps(INDICES)),
        ("config.json", {"id2label": dict(enumerate(BIRDS))}),
        ("config.json", {"classes": BIRDS}),
    ],
)
def test_names_beside_the_weights_of_a_folder(tmp_path, file, content):
    folder = hub_folder("timm-plain", **(content if file == "config.json" else {}))(tmp_path, 1000)
    if file == "metadata":
        weights = folder / "model.safetensors"
        save_file({name: tensor.clone() for name, tensor in load_file(weights).items()}, weights, {"classes": content})
    elif file != "config.json":
        (folder / file).write_text(content)
    described = describe_checkpoint(folder, overrides=stated("timm-plain"))
    assert described.labels == tuple(BIRDS)
    assert described.labels_from.endswith(file)


def test_names_that_differ_are_asked_for(tmp_path):
    with pytest.raises(CheckpointError, match="differ in class_names of the file, classes of the file: --labels FILE"):
        names_beside(tmp_path, {"class_names": BIRDS, "classes": BIRDS[::-1]})
    own = Labels(("golden retriever", "tench"), "config.json", ("n02099601", "n01440764"))
    beside = {"label2id of config.json": ["x", "y"], "labels.txt": ["n02099601", "n01440764"]}
    assert choose(2, own, dataset="", given=None, beside=beside) == own
    with pytest.raises(CheckpointError, match=r"differ in config\.json, labels\.txt: --labels FILE"):
        choose(2, own, dataset="", given=None, beside={"labels.txt": ["tench", "golden retriever"]})


@pytest.mark.parametrize(
    "beside", [{"classes": 1000}, {"labels": [0, 1]}, {"classes": {"weight": torch.ones(1)}}, {"id2label": {}}]
)
def test_what_names_no_class_hides_no_names(tmp_path, beside):
    assert names_beside(tmp_path, beside).labels_from == "ImageNet-1k, by the number of classes"


@pytest.mark.parametrize(
    ("label2id", "id2label", "origin"),
    [
        (INDICES, "made up", "label2id of config.json"),
        (INDICES, None, "label2id of config.json"),
        ({f"LABEL_{i}": i for i in range(1000)}, None, "ImageNet-1k, by the number of classes"),
        (INDICES, {str(i): f"fish {i}" for i in range(1000)}, "config.json"),
    ],
)
def test_label2id_names_classes_that_id2label_does_not(tmp_path, label2id, id2label, origin):
    keys = {} if id2label == "made up" else {"id2label": id2label}
    folder = hub_folder("huggingface-vit", label2id=label2id, **keys)(tmp_path, 1000)
    described = describe_checkpoint(folder)
    assert described.labels_from == origin
    assert (described.labels[7] == "bird 007") == origin.startswith("label2id")
