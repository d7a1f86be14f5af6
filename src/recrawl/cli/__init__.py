"""The command line: one module a command group."""


def main() -> None:
    """The entry point `recrawl`."""
    from recrawl.cli.app import app

    app()
