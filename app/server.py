"""From settings to a listening process, and how it drains and ends.

A server leaves in the order that load balancers need: not ready first, then no new connections, then gone. uvicorn by
itself closes its socket at the signal, while every balancer still sends requests, and exits with 0 whatever happened
(vllm-project/vllm#48966).
"""

import gc
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

import uvicorn
from pydantic import ValidationError
from pydantic_settings import CliApp

from app.errors import CannotStart
from app.http.keys import open_keys
from app.lifecycle import Lifecycle
from app.machine import allow_open_files, check_processor, hide_memory
from app.settings import VERSION, Settings, unknown_variables, variable
from app.telemetry.logs import configure

if TYPE_CHECKING:
    from fastapi import FastAPI

log = logging.getLogger(__name__)

UNSENT_BYTES = 64 * 1024  # of a connection that the system may hold, beside what is on its way
CLOSE = (b"connection", b"close")
GRACE_S = 5.0  # after the last request, for the engine and the drawing threads to end
END_S = 2.0  # after that, for threads that nothing can interrupt, such as one that asks a name server
MAX_CONNECTIONS = 2048  # open ones, of which a balancer needs few
OWN_FILES = 64  # open at most beside connections: decoders, files of the bundle, Redis
FLUSH_S = 1.0  # after a failure, for responses to be sent and for probes to see why
EXIT_CANNOT_START = 3
EXIT_FAILED = 70  # EX_SOFTWARE of sysexits.h
EXIT_OVERDUE = 75  # EX_TEMPFAIL


def settings_of(flags: Sequence[str]) -> Settings:
    """What the flags and the VIT_* variables say. Exits with 2 if that is nothing, and with 0 after --help and
    --version.
    """
    if "--version" in flags:
        print(f"vit-serve {VERSION}")  # noqa: T201
        sys.exit()
    try:
        return CliApp.run(Settings, cli_args=list(flags))
    except ValidationError as error:
        for e in error.errors():
            field = f"{variable(str(e['loc'][0]))}: " if e["loc"] else ""
            sys.stderr.write(f"cannot start: {field}{e['msg'].removeprefix('Value error, ')}\n")
        sys.exit(2)


def load(flags: Sequence[str] = ()) -> "tuple[FastAPI, Settings, list[socket.socket]]":
    """The service that the flags and the VIT_* variables ask for, with its model warm, and the sockets to serve it at.

    Exits with 2 or 3 if that is not possible, and with 0 after --help and --version.
    """
    settings = settings_of(flags)
    configure(settings.log_format, settings.log_level)
    for sentence in unknown_variables(os.environ):
        log.warning(sentence)
    try:
        with ExitStack() as undone:
            keys = open_keys(settings)
            hide_memory()
            ports = ["port", "metrics_port"] if settings.metrics_port else ["port"]
            sockets = [undone.enter_context(_bind(settings, field)) for field in ports]  # the model takes seconds
            check_processor()
            log.info("loading libraries")
            from app.backend import Backend

            backend = Backend(settings=settings)
            undone.callback(backend.stop)
            log.info("loading the web framework")
            from app.main import create_app  # with FastAPI, while the model loads

            app = create_app(settings, backend=backend, keys=keys)
            undone.pop_all()
    except (CannotStart, OSError) as error:
        _cannot_start(error)
    gc.collect()
    gc.freeze()  # a full collection over these permanent objects would block the event loop for 50 to 110 ms
    return app, settings, sockets


def max_connections() -> int:
    """MAX_CONNECTIONS, or fewer where the system allows too few open files."""
    allowed = allow_open_files(MAX_CONNECTIONS + OWN_FILES)
    if allowed >= MAX_CONNECTIONS + OWN_FILES:
        return MAX_CONNECTIONS
    most = max(allowed - OWN_FILES, 1)
    log.warning("the system allows %d open files (ulimit -n), so at most %d connections", allowed, most)
    return most


def serve(app: "FastAPI", settings: Settings, sockets: list[socket.socket]) -> None:
    """Run one server at one or two ports, which the guard tells apart. Exits with 3 if it cannot listen there."""
    from app.http.protocol import GuardedProtocol  # needs FastAPI, which is imported while the model loads

    protocol = partial(GuardedProtocol, max_connections=max_connections())
    config = uvicorn.Config(
        app,
        http=protocol,  # type: ignore[arg-type]  # any factory of protocols will do
        ws="none",
        log_config=None,  # uvicorn's loggers use the handler of all others
        access_log=False,
        timeout_keep_alive=settings.keep_alive_s,
        timeout_graceful_shutdown=settings.drain_timeout_s,
        server_header=False,
        proxy_headers=False,  # no answer depends on the address or scheme of a client
    )
    try:
        _listen(sockets, config.backlog)
    except OSError as error:
        _cannot_start(error)
    server = Server(config, lifecycle=app.state.services.lifecycle, drain_delay_s=settings.drain_delay_s)
    server.run(sockets=sockets)


def _bind(settings: Settings, field: str) -> socket.socket:
    """A socket at the port of this field, which does not listen yet. Raises CannotStart."""
    host, port = settings.host, getattr(settings, field)
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections that have just ended may keep the port
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
    try:
        bound.bind((host, port))
    except (OSError, TypeError) as error:  # TypeError: the host is not ASCII, and cannot be encoded as a name
        bound.close()
        reason = error.strerror if isinstance(error, OSError) else "this is not an address"
        raise CannotStart(f"port {port} of {host} ({variable(field)}, VIT_HOST): {reason}") from None
    return bound


def _listen(sockets: list[socket.socket], backlog: int) -> None:
    """Raises OSError if another process has begun to listen at a port since it was bound here."""
    for bound in sockets:
        bound.listen(backlog)
        host, port, *_ = bound.getsockname()
        log.info("listening on http://%s:%d", f"[{host}]" if ":" in host else host, port)


def _cannot_start(error: Exception) -> NoReturn:
    sys.stderr.write(f"cannot start: {error}\n")  # at once: the log has a thread of its own
    sys.exit(EXIT_CANNOT_START)


class Server(uvicorn.Server):
    """Serves until SIGTERM or SIGINT. Ends the process by itself when the service fails.

    After SIGTERM it goes on serving for `drain_delay_s`; after SIGINT it does not. Then requests in progress have the
    graceful timeout of `config` to finish. SIGINT after another signal ends the process at once, and so does a shutdown
    that takes longer than all of this. SIGTERM does so never: kubelets and Kata send it twice.
    """

    def __init__(self, config: uvicorn.Config, *, lifecycle: Lifecycle, drain_delay_s: float) -> None:
        super().__init__(config)
        self._lifecycle = lifecycle
        self._drain_delay_s = drain_delay_s
        self._drain_at: float | None = None
        lifecycle.when_failed(lambda: _exit_after(FLUSH_S, EXIT_FAILED))

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._drain_at is not None:
            if sig == signal.SIGINT:
                os._exit(128 + sig)
            return
        delay = 0.0 if sig == signal.SIGINT else self._drain_delay_s
        self._drain_at = time.monotonic() + delay
        self._lifecycle.leave()
        _exit_after(delay + (self.config.timeout_graceful_shutdown or 0) + GRACE_S, EXIT_OVERDUE)

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        await super().serve(sockets)
        _exit_after(END_S, 0)  # closing the event loop waits for every thread

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second."""
        if self._drain_at is not None:
            # Clients that keep a connection open have to open a new one, which may lead to another replica.
            if CLOSE not in self.config.encoded_headers:
                self.config.encoded_headers.append(CLOSE)
                self.server_state.default_headers = [*self.server_state.default_headers, CLOSE]
            if time.monotonic() >= self._drain_at:
                self._lifecycle.start_draining()
                self.should_exit = True
        return await super().on_tick(counter)


def _exit_after(seconds: float, code: int) -> None:
    """Exit from a thread of its own, because the event loop and the engine may both be stuck by then."""
    timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), os._exit, [code])
    timer.daemon = True
    timer.start()
