"""wheel_tree.py: imports of one another, and nothing else, are under vit_serve/ in a wheel."""

import ast

import pytest

from wheel_tree import FOLDERS, ROOT, rewritten


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from app.errors import X", "from vit_serve.app.errors import X"),
        ("from app import app as model, x", "from vit_serve.app import app as model, x"),
        ("import export.a as b, json, model.c as d", "import vit_serve.export.a as b, json, vit_serve.model.c as d"),
        ("from vit_serve_client.npy import (\n    npy,\n)", "from vit_serve.client.npy import (\n    npy,\n)"),
        ("def f():\n    é = 1; from model import x", "def f():\n    é = 1; from vit_serve.model import x"),
        ('"""from app import x"""\nfrom application import y', '"""from app import x"""\nfrom application import y'),
        ("from vit_serve.exported import x", "from vit_serve.exported import x"),
    ],
)
def test_imports_are_rewritten(source, expected):
    assert rewritten(source.encode()).decode() == expected


def test_an_import_that_would_bind_another_name_is_refused():
    with pytest.raises(ValueError, match=r"line 2: import app\.errors needs `as`, or `from`"):
        rewritten(b"x = 1\nimport app.errors")


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_rewritten_file_is_the_same_program_but_for_its_imports(folder):
    for path in (ROOT / folder).rglob("*.py"):
        source = path.read_bytes()
        assert shape(rewritten(source)) == shape(source)


def shape(source: bytes) -> str:
    """Every node but names of imported modules."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            node.module = ""
        elif isinstance(node, ast.alias):
            node.name = node.name.split(".")[-1]
    return ast.dump(tree)
