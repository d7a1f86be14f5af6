"""`recrawl init`: a first declaration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recrawl.cli.surface import JsonOption, emit, out
from recrawl.errors import Misuse, Permanent

EXAMPLE = """\
# What recrawl keeps in step. Sync all of it with `recrawl sync`, one source with `recrawl sync example`.

[source.example]
# Where pages are found: { auto = "https://..." } finds sitemaps and feeds by itself. Or say it:
#   find = { sitemap = "https://www.example.com/sitemap.xml", match = "/products/" }
#   find = [{ feed = "https://www.example.com/feed.xml" }, { sitemap = "https://www.example.com/sitemap.xml" }]
#   find = { urls = ["https://www.example.com/a", "https://www.example.com/b"] }
find = { auto = "https://www.example.com/" }

# What is read out of a page. Left out: the article (title, author, published, language, text).
#read = "Product"

# What identifies a page: names of fields, or { match = '/p/(\\d+)' } for the URL. Left out: the URL.
#page_id = "sku"

# For texts that name no time zone, and no currency.
#zone = "Europe/Berlin"
#currency = "EUR"

# How fast, and how often at most. robots.txt, its crawl-delay and Retry-After are always obeyed.
#pace = { concurrency = 4, delay = "250ms" }
#revisit = { min = "6h", max = "30d" }

# A record type: a table, a key, and fields. Selectors: css, xpath, jmes, meta, jsonld, names.
#[record.Product]
#table = "products"
#key = "sku"
#history = true
#fields.sku = { type = "str", css = ".sku::text" }
#fields.name = { type = "str", css = "h1::text" }
#fields.price = { type = "Price | None", css = ".price::text" }
#fields.stock = { type = "Stock", css = ".stock::text" }
#fields.viewers = { type = "Volatile[int | None]", css = ".viewers::text" }
"""


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to write it.")] = Path(),
    json: JsonOption = False,
) -> None:
    """Write a commented recrawl.toml to start from. Never overwrites one."""
    path = folder / "recrawl.toml"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(EXAMPLE)
    except FileExistsError:
        action = "Edit it, then run `recrawl sync`; or name another folder: `recrawl init DIR`."
        raise Misuse("there is a recrawl.toml already", place=str(path.resolve()), action=action) from None
    except OSError as error:
        action = "Name a folder that you may write to: `recrawl init DIR`."
        raise Permanent(f"the file cannot be written: {error.strerror}", place=str(path), action=action) from None
    if json:
        emit({"written": str(path.resolve())})
        return
    console = out()
    console.print(f"Wrote {path}.")
    console.print(f"Next: put your site's address into {path}, then run `recrawl sync`" + _there(folder) + ".")
    console.print("Without a declaration: `recrawl sync https://your-site.example`.")


def _there(folder: Path) -> str:
    return "" if folder == Path() else f" in {folder}"
