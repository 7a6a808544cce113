"""app/door/root.py: the path below VIT_ROOT_PATH."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.door.root import below, check_root_path
from app.errors import CannotStart

SEGMENTS = st.text("ab.%/", max_size=6)
ROOTS = st.sampled_from(["", "/a", "/a/b", "/b.a"])


@given(root=ROOTS, rest=SEGMENTS)
def test_with_the_prefix_the_rest_is_what_follows(root, rest):
    assert below(root, f"{root}/{rest}") == f"/{rest}"


@given(root=ROOTS, path=SEGMENTS)
def test_without_it_the_path_stays(root, path):
    if path != root and not path.startswith(f"{root}/"):
        assert below(root, path) == path


def test_the_prefix_itself_is_the_home_page():
    assert [below("/vit", path) for path in ("/vit", "/vitamin")] == ["/", "/vitamin"]
    assert below("", "") == ""


@pytest.mark.parametrize("root_path", ["/model", "/model/vit", "/docs", "/page", "/static-offline-docs", "/livez"])
def test_a_prefix_that_is_a_path_of_the_service_is_refused(root_path):
    with pytest.raises(CannotStart, match=f"{root_path}, but /{root_path.split('/')[1]} is a path of the service"):
        check_root_path(root_path, paths=["/", "/model/{name}"])


@pytest.mark.parametrize("root_path", ["", "/vit", "/vit/model", "/models", "/livez2"])
def test_other_prefixes_are_allowed(root_path):
    check_root_path(root_path, paths=["/", "/model/{name}"])  # raises CannotStart otherwise, see above
