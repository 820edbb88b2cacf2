"""``.. public-names:: families``: every public name of one room, from its docstring; none may be left out.

A name is public if ``likeset/__init__.pyi`` lists it. It stands on the page of the room that defines it, so a new name
of a known room is documented by writing its docstring. The build fails for a public name that is on no page, and for
a public name, method or property without a docstring.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

import likeset

_logger = logging.getLogger(__name__)
# Public modules whose own names are public as well.
MODULES = ("checks", "comparison", "errors", "plots", "theory", "environments")


def public_names() -> Iterator[tuple[str, str]]:
    """Pairs (room, qualified name) of everything public, e.g. ("families", "likeset.Poisson")."""
    for name in likeset.__all__:
        thing = getattr(likeset, name)
        if inspect.ismodule(thing):
            continue
        module = getattr(thing, "__module__", None) or "likeset"
        yield [*module.split("."), "likeset"][1], f"likeset.{name}"
    for module in MODULES:
        members = getattr(likeset, module)
        top_level = {getattr(likeset, name) for name in likeset.__all__ if inspect.isclass(getattr(likeset, name))}
        for name in getattr(members, "__all__", None) or _own_names(members):
            thing = getattr(members, name)
            if name.startswith("_") or inspect.ismodule(thing) or (inspect.isclass(thing) and thing in top_level):
                continue
            yield f"{module}.", f"likeset.{module}.{name}"


def _own_names(module: Any) -> list[str]:
    return [name for name, thing in vars(module).items() if getattr(thing, "__module__", None) == module.__name__]


def found(qualified: str) -> Any:
    """What a qualified name such as "likeset.theory.online_regret" names."""
    thing: Any = likeset
    for part in qualified.split(".")[1:]:
        thing = getattr(thing, part)
    return thing


def undocumented(qualified: str) -> Iterator[str]:
    """The name, and the names of its public methods and properties, that have no docstring."""
    thing = found(qualified)
    if (inspect.isclass(thing) or inspect.isroutine(thing)) and not inspect.getdoc(thing):
        yield qualified
    if not inspect.isclass(thing):
        return
    for name, member in vars(thing).items():
        documentable = inspect.isfunction(member) or isinstance(member, (property, classmethod, staticmethod))
        if documentable and not name.startswith("_") and not inspect.getdoc(getattr(thing, name)):
            yield f"{qualified}.{name}"


class PublicNames(SphinxDirective):
    """Autodoc entries for the public names of the rooms named in the argument, alphabetically."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """The entries, parsed."""
        rooms = self.arguments[0].split()
        environment = self.state.document.settings.env
        lines: list[str] = []
        for room, qualified in sorted(public_names(), key=lambda pair: pair[1].lower()):
            if room not in rooms:
                continue
            _documented(environment).setdefault(qualified, []).append(environment.docname)
            thing = found(qualified)
            for missing in undocumented(qualified):
                _logger.warning("%s is public and has no docstring", missing, location=self.get_location())
            kind = "autoclass" if inspect.isclass(thing) else "autofunction" if callable(thing) else "autodata"
            kind = "autoexception" if kind == "autoclass" and issubclass(thing, Exception) else kind
            lines += [f".. {kind}:: {qualified}", ""]
        container = nodes.section()
        container.document = self.state.document
        self.state.nested_parse(StringList(lines, source=environment.docname), self.content_offset, container)
        return container.children


def _documented(environment: Any) -> dict[str, list[str]]:
    if not hasattr(environment, "likeset_documented"):
        environment.likeset_documented = {}
    return environment.likeset_documented  # type: ignore[no-any-return]


def _check(app: Sphinx, environment: Any) -> None:
    documented = _documented(environment)
    for room, qualified in public_names():
        if not documented.get(qualified):
            _logger.warning("%s is public and on no page: add the room %r to one in docs/api", qualified, room)


def _forget(app: Sphinx, environment: Any, docname: str) -> None:
    for pages in _documented(environment).values():
        if docname in pages:
            pages.remove(docname)


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the directive and the check."""
    app.add_directive("public-names", PublicNames)
    app.connect("env-purge-doc", _forget)
    app.connect("env-check-consistency", _check)
    return {"version": "1", "parallel_read_safe": False}
