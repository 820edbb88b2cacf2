"""``likeset serve``: bind, print the address, open a browser, run until stopped."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import webbrowser
from typing import Any

from likeset.arguments import database_path, flag
from likeset.errors import InvalidArgumentError, StoreError
from likeset.extras import optional_packages
from likeset.web.app import create_app
from likeset.web.connections import MOST_CONNECTIONS, ShortConnection
from likeset.web.security import is_loopback

with optional_packages():
    import uvicorn
    from starlette.applications import Starlette

TOKEN = "LIKESET_TOKEN"


def serve(
    store: str | os.PathLike[str] = "likeset.db",
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    names: tuple[str, ...] = (),
    read_only: bool = False,
    open_browser: bool = False,
    say: Any = print,
) -> None:
    """Serve the page over a store until it is stopped (ctrl-C).

    store         the file; it is made with the first study
    host          other than this computer's own address only if you mean it: then everything needs the token
    port          0 takes any that is free
    names         under which it is reached through a proxy: then everything needs the token
    read_only     nobody can write
    open_browser  open the page

    The token is new every time, or what the environment variable ``LIKESET_TOKEN`` says.
    """
    path = database_path("store", store)
    if flag("read_only", read_only) and not path.exists():
        raise StoreError(f"{path} does not exist, and nothing can be written; name a store, or leave out read_only.")
    bound = _bound(host, port)
    address, number = bound.getsockname()[:2]
    name = f"[{address}]" if ":" in address else address
    if ipaddress.ip_address(address).is_unspecified:  # every address of this computer; people know it by its name
        name = socket.gethostname()
    hosts = names if is_loopback(address) else (*names, host, name)
    app = create_app(path, read_only=read_only, token=os.environ.get(TOKEN) or None, hosts=hosts)
    url = f"http://{name}:{number}"
    door = url if read_only and not hosts else f"{url}/enter?token={app.state.gate.token}"
    with contextlib.suppress(KeyboardInterrupt):  # how it is stopped
        say(f"Store: {path}")
        say(f"Page:  {door}")
        for proxy in names:
            say(f"Proxy: https://{proxy}/enter?token={app.state.gate.token}")
        if not is_loopback(address):
            say("This address can be reached from elsewhere, without encryption: put it behind a proxy with TLS.")
        say("Stop with ctrl-C. Nothing acknowledged is lost, however it stops.")
        if open_browser:
            webbrowser.open(door)
        uvicorn.Server(server_config(app)).run(sockets=[bound])


def server_config(app: Starlette) -> uvicorn.Config:
    """How the application is served, with the limits of connections."""
    return uvicorn.Config(
        app, http=ShortConnection, log_level="warning", access_log=False, server_header=False,
        limit_concurrency=MOST_CONNECTIONS, timeout_graceful_shutdown=3, lifespan="on", proxy_headers=False,
    )  # fmt: skip


def _bound(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(256)
    except (OSError, OverflowError) as error:
        raise InvalidArgumentError(
            "port", f"{host}:{port}", f"cannot be used ({error})", "choose another one"
        ) from None
    return made
