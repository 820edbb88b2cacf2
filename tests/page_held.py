"""Tasks of the page that take as long as a test wants: while the file STORE.hold-METHOD is there, 40 % are done.

As a program: a server of the page with such tasks; store and token are arguments.
"""

import sys
import time
from pathlib import Path

from likeset.progress import overheard
from likeset.web.tasks import Tasks


def hold(store, method):
    """Have a method stop at 40 %; ``release`` lets it go on."""
    Path(f"{store}.hold-{method}").touch()


def release(store, method):
    """Let a method go on."""
    Path(f"{store}.hold-{method}").unlink()


class HeldTasks(Tasks):
    """The tasks of the page, each of which can be held."""

    def __init__(self, path, read_only):
        super().__init__(path, read_only)
        self._path = path

    def _held(self, method):
        while Path(f"{self._path}.hold-{method}").exists():
            overheard("choosing", 0.4, 6.0)
            time.sleep(0.02)

    def ask(self, *given):
        self._held("ask")
        return super().ask(*given)

    def tell(self, *given):
        self._held("tell")
        return super().tell(*given)

    def tell_run(self, *given):
        self._held("run")
        return super().tell_run(*given)

    def create(self, *given):
        self._held("create")
        return super().create(*given)

    def data(self, *given):
        self._held("data")
        return super().data(*given)

    def report(self, *given):
        self._held("report")
        return super().report(*given)


if __name__ == "__main__":
    import uvicorn

    from likeset.web import desk
    from likeset.web.app import create_app
    from likeset.web.serving import _bound, server_config
    from page_held import HeldTasks as Held  # by the name of its module, for the processes that compute

    desk.Tasks = Held
    bound = _bound("127.0.0.1", 0)
    print(bound.getsockname()[1], flush=True)
    uvicorn.Server(server_config(create_app(sys.argv[1], token=sys.argv[2]))).run(sockets=[bound])
