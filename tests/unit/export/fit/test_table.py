"""export/fit/table.py: lists of images in CSV, as programs and people write them."""

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from export.fit.labelled import Labelled
from export.fit.table import of_csv
from export.folder_labels import label_of


@pytest.mark.parametrize(
    ("text", "train", "held_out", "note"),
    [
        ("\ufefflabel,FILE\ncat,a.jpg\n dog , b/c.jpg\n", {"a.jpg": "cat", "b/c.jpg": "dog"}, None, None),
        ("Label,note,File\ncat, x,a.jpg\n", {"a.jpg": "cat"}, None, ": columns that are not used: note"),
        ("file,label,split\n/a.jpg,cat,train\n../b.jpg,cat,val\n", {"/a.jpg": "cat"}, {"../b.jpg": "cat"}, None),
        ('FILE,"LABEL"\r\n"a,b.jpg","cat"\r\n\r\nc.jpg,dog,\r\n', {"a,b.jpg": "cat", "c.jpg": "dog"}, None, None),
        (",file,label,split\n0,a,cat,Training\n1,b,cat,validation\n", {"a": "cat"}, {"b": "cat"}, None),
        (
            "file,label,split\na,cat,train\nb,cat,test\nc,cat,valid\n",
            {"a": "cat"},
            {"c": "cat"},
            " has test beside train and valid, not used",
        ),
        ("file,label\na.jpg,caf\xe9\nb.jpg,cafe\u0301\n", {"a.jpg": "caf\xe9", "b.jpg": "caf\xe9"}, None, None),
        ("file\na.jpg\n", {"a.jpg": ""}, None, None),
        *(
            (
                f'file, label, {column}\n"a", "cat", "{train}"\n"b", "cat", "{held_out}"\n',
                {"a": "cat"},
                {"b": "cat"},
                f": the column {column} says which images are held out",
            )
            for column, train, held_out in (
                ("is_valid", "False", "True"),
                ("is_train", "1.0", "0.0"),
                ("set", "train", "test"),
                ("anything", "Train", "Validation"),
            )
        ),
    ],
)
def test_a_csv(tmp_path, text, train, held_out, note):
    path = tmp_path / "images.csv"
    path.write_bytes(text.encode())
    listing = of_csv(path, labelled="label" in text.lower())
    for part, expected in ((listing.train, train), (listing.held_out, held_out)):
        assert part == (expected and tuple(Labelled(tmp_path / file, label) for file, label in expected.items()))
    assert listing.notes == ((f"{path}{note}",) if note else ())


@given(st.lists(st.tuples(*[st.text(st.characters(codec="utf-8", exclude_characters="\0,;|"), min_size=1)] * 2)))
def test_any_names_pass_through_a_csv(tmp_path_factory, rows):
    rows = [row for row in rows if all(cell.strip() for cell in row)]
    path = tmp_path_factory.getbasetemp() / "images.csv"
    with path.open("w", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows([("file", "label"), *rows, ("last", "one")])
    found = [(image.file, image.label) for image in of_csv(path, labelled=True).train]
    assert found == [(path.parent / file.strip(), label_of(label)) for file, label in [*rows, ("last", "one")]]


def outcome(path) -> tuple[Labelled, ...] | str:
    """What is learned from, or the sentence of the refusal."""
    try:
        return of_csv(path, labelled=True).train
    except ValueError as error:
        return str(error)


@given(st.binary())
def test_no_csv_ends_in_a_traceback(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "images.csv"
    path.write_bytes(b"file,label\n" + content)
    found = outcome(path)
    assert found if isinstance(found, tuple) else found.startswith("--images ")


@pytest.mark.parametrize("cell", ['"a,x"', "a|x", "a;x"])
def test_a_cell_with_several_labels_is_refused_or_named(tmp_path, cell):
    path = tmp_path / "images.csv"
    path.write_text(f"file,label\n1,{cell}\n2,a\n3,b\n")
    joined = cell.strip('"')
    listing = of_csv(path, labelled=True)
    assert listing.train[0].label == joined
    assert listing.notes == (f"each of these is one label, as an image has no more: {joined}",)
    path.write_text(path.read_text() + "4,x\n")
    refused = f"the label {joined!r} is 2 labels of other images, and an image can have one"
    assert outcome(path) == f"--images {path}: {refused}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "its first line is empty; it lacks file and label"),
        ("image,label\n", "its first line is image, label; it lacks file"),
        ("file;label\na;b\n", "it lacks file and label. Its columns must be separated by commas"),
        ("file,label,Label\n", "two columns are called label"),
        ("file,label\n", "it lists no images to learn from"),
        ("file,label,split\na,cat,test\n", "it lists no images to learn from"),
        ("file,label\na.jpg,cat,dog\n", "line 2: it has 3 cells, and the first line 2. An image has one label"),
        ("file,label,split\na.jpg,cat,held\n", "line 2: split is 'held', and not one of train, training, val, valid"),
        ("file,label,split\na.jpg,cat,\n", "line 2: split is empty"),
        (
            "file,label,fold\na,cat,0\nb,cat,4\n",
            "the column fold may say which images are held out, and has 0, 4: call",
        ),
        ("file,label,phase\na,cat,train\nb,cat,test\nc,cat,x\n", "the column phase may say which images are held out"),
        ("file,label,is_valid\na,cat,True\nb,cat,\n", "the column is_valid may say which images are held out"),
        ("file,label,set,is_test\na,cat,train,1\nb,cat,val,0\n", "the columns is_test, set hold out different images"),
        ("file,label,split\na.jpg,cat,train\nb.jpg,dog,val\n", "labels that no other image has: dog"),
    ],
)
def test_refusals(tmp_path, text, message):
    path = tmp_path / "images.csv"
    path.write_text(text)
    assert message in outcome(path)
