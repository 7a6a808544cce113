"""`python -m app.inference.pack`."""

import pytest

from app.inference.pack import main
from app.inference.packed import CHECKSUMS


def test_it_packs_the_bundle_of_the_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("VIT_CACHE", str(tmp_path / "cache"))
    main()
    (folder,) = (tmp_path / "cache").iterdir()
    assert (folder / CHECKSUMS).is_file()


@pytest.mark.parametrize("cache", ["off", "/proc/cache"])
def test_it_fails_where_it_cannot(monkeypatch, cache):
    monkeypatch.setenv("VIT_CACHE", cache)
    with pytest.raises(SystemExit, match=f"not packed into {cache}"):
        main()
