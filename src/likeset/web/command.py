"""``likeset serve`` and ``likeset demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from likeset.extras import optional_packages

with optional_packages():
    import typer
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TimeRemainingColumn

from likeset.messages import say


def serve_command(
    store: Annotated[Path, typer.Argument(help="The store; it is made with the first study.")] = Path("likeset.db"),
    host: Annotated[
        str, typer.Option(help="Address to bind to; any but this computer's own needs the token for everything.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes any that is free.")] = 8765,
    name: Annotated[
        list[str] | None,
        typer.Option(help="A name under which a proxy serves the page; then everything needs the token."),
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Nobody can write.")] = False,
    browser: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Show a store of studies as a local page: verdicts, pictures, entering results, everything as JSON too.

    Binds to this computer only. Writing needs the token that is part of the address printed (or set LIKESET_TOKEN).
    """
    from likeset.web.serving import serve

    console = Console()
    serve(
        store, host=host, port=port, names=tuple(name or ()), read_only=read_only, open_browser=browser,
        say=lambda text: say(console, text),
    )  # fmt: skip


def demo_command(
    store: Annotated[Path, typer.Argument(help="The store to fill with three examples.")] = Path("demo.db"),
    show: Annotated[bool, typer.Option("--serve/--no-serve", help="Open the page on it.")] = True,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes any that is free.")] = 8765,
    browser: Annotated[bool, typer.Option("--open/--no-open", help="Open it in a browser.")] = True,
) -> None:
    """Three example studies, and the page on them: an A/B test, a survival study, half a laboratory campaign."""
    from likeset.web.demo import build_demo
    from likeset.web.serving import serve

    console = Console()
    store.parent.mkdir(parents=True, exist_ok=True)
    with Progress(
        SpinnerColumn(), *Progress.get_default_columns()[:3], TimeRemainingColumn(), console=console, transient=True
    ) as progress:
        task = progress.add_task("Telling the examples", total=1.0)
        names = build_demo(store, lambda fraction: progress.update(task, completed=fraction))
    say(console, f"Studies in {store}: {', '.join(names)}")
    if show:
        serve(store, port=port, open_browser=browser, say=lambda text: say(console, text))
