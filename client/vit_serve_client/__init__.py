"""The service from Python: `from vit_serve_client import Client`."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vit_serve_client.client import Answer, Client, NotTheService, ServiceProblem
    from vit_serve_client.map import Map

__all__ = ["Answer", "Client", "Map", "NotTheService", "ServiceProblem"]


def __getattr__(name: str) -> Any:
    """Only when they are asked for: httpx takes a while to import, and before that the command takes care of Ctrl-C."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import vit_serve_client.client as code

    return getattr(code, name)


def __dir__() -> list[str]:
    return __all__
