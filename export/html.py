"""HTML pages that hold all that they show and need nothing else, in the colours and the type of the web page."""

from base64 import b64encode
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

BASE = Path(__file__).with_name("base.html")
PALETTE = Path(__file__).parents[1] / "app" / "page" / "palette.css"


@cache
def palette() -> str:
    """CSS: colours by name, and the typeface."""
    return PALETTE.read_text(encoding="utf-8")


def render(template: Path, **values: Any) -> str:
    """A page whose template extends `base.html`."""
    environment = Environment(
        loader=FileSystemLoader([template.parent, BASE.parent]),
        autoescape=True,
        finalize=_shown,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    return environment.get_template(template.name).render(palette=palette(), data_uri=_data_uri, **values)


def _data_uri(picture: bytes, kind: str) -> str:
    """A picture of the `kind` png or jpeg."""
    return f"data:image/{kind};base64,{b64encode(picture).decode()}"


def _shown(value: Any) -> Any:
    """Text or a number as a page has it: numbers have commas, and stay on one line with their %."""
    if isinstance(value, int):
        return f"{value:,}"
    return value.replace(" %", "\N{NO-BREAK SPACE}%") if type(value) is str else value
