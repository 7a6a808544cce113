"""What tests do with the page, and what it shows."""

from base64 import b64decode
from io import BytesIO
from mimetypes import guess_type
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
from PIL import Image

PHONE = {"has_touch": True, "viewport": {"width": 390, "height": 844}}


def pick(page: Any, files: dict[str, bytes]) -> None:
    """Choose files of these names in the dialog."""
    listed = [{"name": name, "mimeType": guess_type(name)[0], "buffer": data} for name, data in files.items()]
    page.set_input_files("#file", listed)


def settle(page: Any) -> None:
    """Wait until the page shows the map that the controls ask for, or has it where another tab is open."""
    page.locator("body:not(.empty) #stage[aria-busy='false']").wait_for(state="attached")


def turn(page: Any, tab: str) -> None:
    page.get_by_role("tab", name=tab, exact=True).click()


def shown(page: Any) -> str:
    """The map that the page shows, scaled down so that comparing is quick."""
    settle(page)
    return page.evaluate(
        """() => {
            const canvas = document.createElement("canvas");
            [canvas.width, canvas.height] = [160, Math.round((160 * map.height) / map.width)];
            canvas.getContext("2d").drawImage(map, 0, 0, canvas.width, canvas.height);
            return canvas.toDataURL();
        }"""
    )


def alike(one: str, other: str) -> bool:
    """Whether two maps, as `shown` gives them, are the same on a file and on the image that the service keeps of it."""
    first, second = (
        np.asarray(Image.open(BytesIO(b64decode(data.split(",")[1]))).convert("RGB")).astype(int)
        for data in (one, other)
    )
    return first.shape == second.shape and bool(np.abs(first - second).mean() < 2)


def link(page: Any) -> str:
    """The fragment of the page's address with all that was set. The page writes it a moment later, and of two timers
    the one that is set later and waits longer ends later.
    """
    return page.evaluate("() => new Promise((read) => setTimeout(() => read(location.hash), 200))")


def visible(image: Any) -> bool:
    """Whether the image, once it is scrolled to, has pixels."""
    image.scroll_into_view_if_needed()
    return image.evaluate("(image) => image.decode().then(() => image.naturalWidth)") > 0


def served(page: Any, path: str) -> dict[str, Any]:
    """JSON of the service."""
    return page.request.get(page.url.split("#")[0].rstrip("/") + path).json()


def ask_unlikely(page: Any) -> None:
    """Ask for the evidence of a label of which the page has no maps."""
    likely = page.locator(".labels .name").all_inner_texts()
    labels = served(page, "/model")["manifest"]["labels"]
    page.fill("[name=label]", next(label for label in labels if label not in likely))


def address(page: Any, format: str = "json") -> str:
    """The download address of the map in a format."""
    return page.locator(f"#take-{format}").get_attribute("href")


def asked(page: Any) -> dict[str, str]:
    """The parameters of the request for the map."""
    return {name: values[0] for name, values in parse_qs(urlsplit(address(page, "png")).query).items()}
