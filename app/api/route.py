"""What every path does before its function runs, and how it is run."""

from functools import partial
from operator import attrgetter
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.dependencies.utils import get_flat_params
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope, Send

from app.api.parameters import check_names
from app.http.paths import is_public
from app.http.problems import problems


class CheckedRoute(APIRoute):
    """Refuses a query that names what the path does not take, where a key is needed.

    Probes and the page answer the same whatever the query: health checkers and caches add some. FastAPI would
    solve a dependency of the whole application anew for each request; what a path takes is found here once.

    A function that takes the request alone is called without FastAPI, which would spend as much on it as on a decoder.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        of_fastapi = [field.alias for field in get_flat_params(self.dependant)]
        described = [parameter["name"] for parameter in (self.openapi_extra or {}).get("parameters", ())]
        self._in_query = [name for name in (*of_fastapi, *described) if f"{{{name}}}" not in self.path]
        self._takes_request_alone = not of_fastapi and not self.dependant.dependencies

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        request, allowed = Request(scope, receive, send), scope["method"] in (self.methods or ())
        if scope["query_string"] and allowed and not is_public(scope["method"], self.path):
            check_names([name for name, _ in request.query_params.multi_items()], self._in_query, request)
        if not (allowed and self._takes_request_alone):
            await super().handle(scope, receive, send)
            return
        answer = await self.endpoint(request)
        if not isinstance(answer, Response):
            assert self.response_field
            content = self.response_field.serialize_json(answer, exclude_none=self.response_model_exclude_none)
            answer = Response(content, media_type="application/json")
        await answer(scope, receive, send)


CheckedRouter = partial(
    APIRouter,
    route_class=CheckedRoute,
    generate_unique_id_function=attrgetter("name"),  # generators name their functions after it
    responses=problems(),
)
