"""What is on the stage of the page."""

from typing import Any
from urllib.parse import parse_qs, urlsplit


def settle(page: Any) -> None:
    """Wait until the map on show is the one that the controls ask for."""
    page.locator("body:not(.empty) #stage[aria-busy='false'] #map[src]").wait_for()
    page.evaluate("map.decode()")


def shown(page: Any) -> str:
    """The map on show, scaled down to something that is quick to compare."""
    settle(page)
    return page.evaluate(
        """() => {
            const canvas = document.createElement("canvas");
            [canvas.width, canvas.height] = [160, Math.round((160 * map.naturalHeight) / map.naturalWidth)];
            canvas.getContext("2d").drawImage(map, 0, 0, canvas.width, canvas.height);
            return canvas.toDataURL();
        }"""
    )


def address(page: Any, format: str = "json") -> str:
    """Where the map on show can be had in a format."""
    return page.locator(f"#take-{format}").get_attribute("href")


def asked(page: Any) -> dict[str, str]:
    """The parameters of the picture on show."""
    return {name: values[0] for name, values in parse_qs(urlsplit(address(page, "png")).query).items()}
