"""A server of the page with little patience, for test_web_attacks.py: store and token are arguments."""

import sys

import uvicorn

from likeset.web import connections
from likeset.web.app import create_app
from likeset.web.security import Limits
from likeset.web.serving import _bound, server_config

if __name__ == "__main__":
    connections.SECONDS_TO_ASK = 1.0
    bound = _bound("127.0.0.1", 0)
    print(bound.getsockname()[1], flush=True)
    app = create_app(sys.argv[1], token=sys.argv[2], limits=Limits(body_seconds=1.0))
    uvicorn.Server(server_config(app)).run(sockets=[bound])
