"""export/messages.py: who runs make reads its variables, which make turns into options."""

import pytest

from export.messages import BY_MAKE, worded
from model.checkpoints.checkpoint import Origin
from model.checkpoints.describe import table


@pytest.mark.parametrize(
    ("sentence", "in_make"),
    [
        ("bundles/a exists; --replace replaces it", "bundles/a exists; REPLACE=yes replaces it"),
        ("--labels FILE names them.", "LABELS=FILE names them."),
        ("--out x.pth: the name must end in .safetensors", "OUT=x.pth: the name must end in .safetensors"),
        ("such as --set mean=0,0,0 --set heads=1", 'such as OPTIONS="--set mean=0,0,0 --set heads=1"'),
        ("photos/a--b c.jpg is skipped", "photos/a--b c.jpg is skipped"),
        ("vit-serve export --out a && vit-serve serve --bundle 'a b'", "make export OUT=a && make serve BUNDLE='a b'"),
        ("--strict: images, named above: 1", 'OPTIONS="--strict": images, named above: 1'),
    ],
)
def test_options_are_in_the_words_of_who_types_them(monkeypatch, sentence, in_make):
    assert worded(sentence) == sentence
    monkeypatch.setenv(BY_MAKE, "yes")
    assert worded(sentence) == in_make


def test_names_of_strangers_do_not_control_a_terminal():
    assert table({"labels": ("a\nname", Origin.stated("b"))}) == "stated   labels=a name: b"
    assert worded("a\x1b[31m b\u202ec\r\n\u732b\u200d") == "a\\x1b[31m b\\u202ec\\r\n\u732b\u200d"
