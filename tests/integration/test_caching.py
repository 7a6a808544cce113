"""What a client has is not sent again; how long it may be kept without a question."""

import pytest

from app.api.render import MAX_AGE_S


@pytest.mark.parametrize(
    ("path", "other", "kept"),
    [
        ("{map}?layer=1", "{map}?layer=2", f"private, max-age={MAX_AGE_S}"),
        ("{map}/wall", "{map}/wall?colormap=magma", f"private, max-age={MAX_AGE_S}"),
        # The address does not say of which model a picture is:
        ("/model/inspect/filters", "/model/inspect/positions", "private, max-age=0"),
        ("/page/main.js", "/page/style.css", "no-cache"),
        ("/page/colormaps.png", "/page/style.css", "no-cache"),
    ],
)
def test_an_etag_saves_sending_the_same_again(client, link, path, other, kept):
    first = client.get(path.format(map=link))
    had = {"if-none-match": first.headers["etag"]}
    again = client.get(path.format(map=link), headers=had)
    assert (again.status_code, again.content) == (304, b"")
    assert client.get(other.format(map=link), headers=had).status_code == 200
    assert first.headers["cache-control"] == kept
