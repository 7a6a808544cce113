"""What every path does before its function runs."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.dependencies.utils import get_flat_params
from fastapi.routing import APIRoute

from app.api.parameters import check_names
from app.http.paths import is_public


class CheckedRoute(APIRoute):
    """Refuses a query that names what the path does not take, where a key is needed.

    Probes and the page answer the same whatever the query: health checkers and caches add some. FastAPI would
    solve a dependency of the whole application anew for each request; what a path takes is found here once.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        takes = [field.alias for field in get_flat_params(self.dependant)]
        takes += [parameter["name"] for parameter in (self.openapi_extra or {}).get("parameters", ())]
        in_query = [name for name in takes if f"{{{name}}}" not in self.path]

        async def checked(request: Request) -> Response:
            given = request.query_params.multi_items()
            if given and not is_public(request.method, self.path):
                check_names([name for name, _ in given], in_query, request)
            return await handle(request)

        return checked
