"""Who may do what: hosts, tokens, forged forms, sizes, rates, and what a browser may load.

Reading is free on this computer; from anywhere else, through a proxy, and for anything that writes, one needs the
token: in a cookie (a browser that came through ``/enter?token=...``) or as ``Authorization: Bearer ...`` (programs).
Forms carry a value that only pages of this server know.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from likeset.errors import InvalidArgumentError
from likeset.extras import optional_packages

with optional_packages():
    import anyio
    from starlette.datastructures import Headers
    from starlette.requests import HTTPConnection, Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "likeset-session"
FORM_FIELD = "csrf"
LARGEST_BODY = 8 << 20
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with none at all, browsers would not say where a form comes from
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_SAFE = ("GET", "HEAD", "OPTIONS")
_FORWARDED = ("forwarded", "via", "x-forwarded", "x-real-ip")  # what proxies add begins like this
_SHORTEST_TOKEN = 8
TOO_SLOW = "likeset.too_slow"  # in the scope of a request whose body took too long
_REFUSALS = {  # by status: what programs read, the title of the page
    401: ("NoToken", "The token is missing"),
    403: ("Forbidden", "Not allowed"),
    413: ("TooLarge", "Too much at once"),
    421: ("OtherName", "Another name"),
    429: ("TooMany", "Too many requests"),
}
_MOST_CLIENTS = 4096


def is_loopback(host: str) -> bool:
    """Whether an address is of this computer only.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass
class Bucket:
    """So many requests at once, refilled at a rate."""

    level: float
    at: float


@dataclass
class Limits:
    """Requests per second and client, and how many at once; sizes in bytes."""

    reads: tuple[float, float] = (200.0, 400.0)
    writes: tuple[float, float] = (20.0, 40.0)
    guesses: tuple[float, float] = (0.1, 5.0)
    largest_body: int = LARGEST_BODY
    event_streams: int = 100
    body_seconds: float = 60.0  # until a body must be here
    _buckets: OrderedDict[tuple[str, str], Bucket] = field(default_factory=OrderedDict, repr=False)

    def allows(self, kind: str, client: str, free: bool = False) -> bool:
        """Whether one more is allowed now; what is ``free`` needs to be allowed, and does not count."""
        rate, burst = getattr(self, kind)
        now = time.monotonic()
        bucket = self._buckets.get((kind, client))
        if bucket is None:
            while len(self._buckets) >= _MOST_CLIENTS:
                self._buckets.popitem(last=False)
            bucket = self._buckets[kind, client] = Bucket(burst, now)
        bucket.level = min(burst, bucket.level + rate * (now - bucket.at))
        bucket.at = now
        if bucket.level < 1.0:
            return False
        bucket.level -= 0.0 if free else 1.0
        return True


def too_large(limits: Limits) -> str:
    """What is said to who sends too much.

    >>> too_large(Limits())
    'At most 8 MB at once; tell the rest later, or from the command line.'
    """
    return f"At most {limits.largest_body >> 20} MB at once; tell the rest later, or from the command line."


class Gate:
    """Tokens, sessions and the value that forms carry."""

    def __init__(self, token: str | None = None, read_only: bool = False, hosts: tuple[str, ...] = ()) -> None:
        if token is not None and len(token) < _SHORTEST_TOKEN:
            problem, remedy = f"has {len(token)} characters", f"pass {_SHORTEST_TOKEN} or more, at random"
            raise InvalidArgumentError("token (LIKESET_TOKEN)", "...", problem, remedy)
        self.token = token or secrets.token_urlsafe(24)
        self.read_only = read_only
        self.hosts = frozenset(host.lower() for host in hosts)
        self._secret = secrets.token_bytes(32)

    def is_token(self, given: str) -> bool:
        """Compared in constant time."""
        return hmac.compare_digest(given.encode(), self.token.encode())

    def new_session(self) -> str:
        """What the cookie holds: a number, and that it is ours."""
        number = secrets.token_urlsafe(18)
        return f"{number}.{self._signed('session', number)}"

    def cookie(self, connection: HTTPConnection) -> str:
        """The name of the cookie: browsers show cookies to all ports of a host, and other servers may run there."""
        port = connection.headers.get("host", "").rpartition(":")[2]
        return f"{COOKIE}-{port}" if port.isascii() and port.isdigit() else COOKIE

    def session(self, connection: HTTPConnection) -> str | None:
        """The number of the session that a browser shows, if it is ours."""
        number, _, signature = connection.cookies.get(self.cookie(connection), "").partition(".")
        return number if number and _same(signature, self._signed("session", number)) else None

    def who(self, connection: HTTPConnection) -> str:
        """Whose something is that is kept until it is fetched: a session's, a program's with the token, or anyone's."""
        return self.session(connection) or ("token" if self.has_bearer(connection.headers) else "")

    def form_value(self, session: str) -> str:
        """What a form of this session must carry."""
        return self._signed("form", session)

    def has_bearer(self, headers: Headers) -> bool:
        """Whether a program shows the token."""
        kind, _, given = headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and self.is_token(given.strip())

    def may_read(self, connection: HTTPConnection) -> bool:
        """Everyone on this computer; elsewhere, and through a proxy, who has the token."""
        client = connection.client.host if connection.client is not None else "127.0.0.1"
        if not self.is_our_host(connection.headers.get("host", "")):
            return False
        proxied = self.hosts or any(name.startswith(_FORWARDED) for name in connection.headers)
        if is_loopback(client) and not proxied:
            return True
        return self.has_bearer(connection.headers) or self.session(connection) is not None

    def may_write(self, connection: HTTPConnection) -> bool:
        """Who has the token, unless nobody may."""
        return not self.read_only and (self.has_bearer(connection.headers) or self.session(connection) is not None)

    def form_is_ours(self, connection: HTTPConnection, form: Any) -> bool:
        """Whether a form came from a page of this session; programs with the token need none."""
        if self.has_bearer(connection.headers):
            return True
        session = self.session(connection)
        given = form.get(FORM_FIELD) if hasattr(form, "get") else None
        return session is not None and isinstance(given, str) and _same(given, self.form_value(session))

    def is_our_host(self, host: str) -> bool:
        """Whether a request was meant for this server, and not for a name that somebody pointed at it.

        Addresses are as good as ``localhost``: nobody can point them elsewhere.

        >>> gate = Gate(hosts=("page.example.org",))
        >>> [gate.is_our_host(host) for host in ("localhost:1", "10.0.0.7", "[::1]:80", "page.example.org", "evil.org")]
        [True, True, True, True, False]
        """
        name = host.lower() if host.endswith("]") else host.lower().rpartition(":")[0] or host.lower()
        return name == "localhost" or name in self.hosts or _is_address(name)

    def is_our_origin(self, origin: str, host: str) -> bool:
        """Whether a form comes from a page of this server: of the host and port that it is sent to, or a proxy's."""
        place = urlsplit(origin).netloc.lower()
        return place == host.lower() or place.rpartition(":")[0] in self.hosts or place in self.hosts

    def _signed(self, purpose: str, text: str) -> str:
        return hmac.new(self._secret, f"{purpose}:{text}".encode(), hashlib.sha256).hexdigest()


def _same(given: str, expected: str) -> bool:
    """Compared in constant time, whatever is given."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


class Guard:
    """The middleware: refuses what is not allowed before anything looks at it, and adds headers to every answer."""

    def __init__(self, app: ASGIApp, gate: Gate, limits: Limits, answer: Callable[..., Response]) -> None:
        self.app, self.gate, self.limits, self.answer = app, gate, limits, answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check, then pass on."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
                return
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                added = [(n.lower().encode(), v.encode()) for n, v in HEADERS.items()]
                message["headers"] = [*message["headers"], *(pair for pair in added if pair[0] not in given)]
            await send(message)

        refusal = self._refusal(HTTPConnection(scope), scope)
        if refusal is not None:
            status, text = refusal
            await self.answer(Request(scope), status, *_REFUSALS[status], text)(scope, receive, with_headers)
            return
        await self.app(scope, self._limited(scope, receive), with_headers)

    def _refusal(self, connection: HTTPConnection, scope: Scope) -> tuple[int, str] | None:
        headers, method, path = connection.headers, scope["method"], scope["path"]
        client = connection.client.host if connection.client is not None else "here"
        if not self.gate.is_our_host(headers.get("host", "")):
            return 421, "This server does not answer to that name."
        writes = method not in _SAFE
        if not self.limits.allows("writes" if writes else "reads", client):
            return 429, "Too many requests; wait a little."
        if "authorization" in headers and not self.limits.allows("guesses", client, self.gate.has_bearer(headers)):
            return 429, "Too many tokens that are none; wait a minute."
        open_to_all = path == "/enter" or path.startswith("/static/")
        if not open_to_all and not self.gate.may_read(connection):
            return 401, "Open the address that the server printed when it started: it has the token."
        if writes and path != "/enter":
            if self.gate.read_only:
                return 403, "This server was started for reading only."
            if not self.gate.may_write(connection):
                return 401, "Writing needs the token: open the address that the server printed when it started."
            origin = headers.get("origin")
            if origin is not None and not self.gate.is_our_origin(origin, headers.get("host", "")):
                return 403, "This form comes from another site."
            if headers.get("sec-fetch-site") in ("cross-site", "same-site"):
                return 403, "This form comes from another site."
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()) or len(length) > 15 or int(length) > self.limits.largest_body:
            return 413, too_large(self.limits)
        return None

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        """The body, cut off where it becomes too long, or takes too long, whatever its header said."""
        received, complete = 0, False
        end = time.monotonic() + self.limits.body_seconds

        async def limited() -> Message:
            nonlocal received, complete
            message: Message = {"type": "http.disconnect"}
            with anyio.move_on_after(float("inf") if complete else end - time.monotonic()) as wait:
                message = await receive()
            if wait.cancelled_caught:
                scope[TOO_SLOW] = True
            received += len(message.get("body", b""))
            complete = complete or not message.get("more_body", False)
            if received > self.limits.largest_body:
                return {"type": "http.disconnect"}
            return message

        return limited
