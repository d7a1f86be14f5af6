"""Declaring sources and records in TOML."""

from __future__ import annotations

from pathlib import Path

import pytest

from recrawl.declare import (
    AfterId,
    Api,
    Article,
    Auto,
    Basic,
    Feed,
    NextLink,
    NextToken,
    Offset,
    PageNumber,
    Price,
    Sitemap,
    Urls,
    env,
)
from recrawl.declare.load import load
from recrawl.declare.toml import read_toml
from recrawl.errors import Misuse
from tests import typing_examples

BOOKS = """
[record.Book]
table = "books"
key = "upc"
fields.upc = { type = "str", css = "table td::text" }
fields.title = { type = "str", css = "h1::text" }
fields.price = { type = "Price | None", css = ".price::text" }
fields.viewers = { type = "Volatile[int | None]", css = ".viewers::text" }

[source.books]
find = [{ sitemap = "https://books.example/sitemap.xml", match = "/book/" }]
read = "Book"
page_id = "upc"
currency = "GBP"
revisit = { min = "6h", max = "30d" }

[source.news]
find = [{ feed = "https://news.example/feed.xml" },
        { sitemap = "https://news.example/news-sitemap.xml", exhaustive = false }]
page_id = { match = '/a-(\\d+)' }
zone = "Asia/Shanghai"
"""

EVERYTHING = """
[record.Everything]
table = "everything"
key = ["shop", "sku"]
each = "li.product"
version = "revision"
[record.Everything.fields]
shop = { type = "str", meta = "og:site_name" }
sku = { type = "str", css = "::attr(data-sku)" }
revision = { type = "int", css = ".revision::text", default = 0 }
rating = { type = "float | None", jsonld = "Product.aggregateRating.ratingValue" }
sold = { type = "Count | None", css = ".sold::text" }
stock = { type = "Stock", css = ".stock::text", default = "unknown" }
weight = { type = "Decimal | None", xpath = ".//b/text()" }
image = { type = "Url | None", css = "img::attr(src)" }
about = { type = "Text | None", css = ".about" }
tags = { type = "list[str]", css = ".tag::text", default = [] }
seen = { type = "Volatile[bool]", css = ".seen", default = false }

[record.Item]
table = "items"
key = "id"
history = true
updated = "updated_at"
fields.id = { type = "int" }
fields.name = { type = "str", jmes = "attributes.name" }
fields.price = { type = "Price | None", names = ["price", "salePrice"] }
fields.updated_at = { type = "Moment" }

[source.x]
find = { auto = "https://a.example/" }
read = ["Everything", "Item"]
"""

ITEMS = (
    EVERYTHING.partition("[record.Item]")[1]
    + EVERYTHING.partition("[record.Item]")[2].partition("[source.x]")[0]
    + """
[source.items]
find = { api = "https://api.example/v1/items", items = "data", id = "id", updated = "updated_at", WAY }
read = "Item"
order = "updated"
auth = { bearer = { env = "API_TOKEN" } }
full_scan = "1d"
"""
)
API = "[source.s]\nfind = { api = 'https://a.example', id = 'id', "
SOURCE = "[source.s]\nfind = { auto = 'https://a.example/' }\n"
RECORD = "[record.R]\ntable = 't'\nkey = 'id'\nfields.id = { type = 'str' }\n"


def refusal(text: str) -> Misuse:
    with pytest.raises(Misuse) as caught:
        read_toml(text.encode())
    return caught.value


def test_toml_and_python_declare_the_same() -> None:
    books, news = read_toml(BOOKS.encode())
    for found, example in ((books, typing_examples.books), (news, typing_examples.news)):
        assert found.spec_hash == example.spec_hash
        assert found.reader_hash == example.reader_hash
    (everything,) = read_toml(EVERYTHING.encode())
    assert everything.records == (typing_examples.Everything.__spec__, typing_examples.Item.__spec__)


def test_an_api_in_toml_is_the_one_in_python() -> None:
    (found,) = read_toml(
        ITEMS.encode().replace(
            b"WAY",
            b"since = { param = 'updated_since', overlap = '10m', missing = 'raise' }, pages = 'offset'",
        )
    )
    assert found.spec_hash == typing_examples.items.spec_hash


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("pages = { offset = 'skip', size = 50, size_param = 'take' }", Offset("skip", size=50, size_param="take")),
        ("pages = { offset = 'skip', total = 'n' }", Offset("skip", total="n")),
        ("pages = { page_number = 'p', start = 0, last = 'meta.last' }", PageNumber("p", start=0, last="meta.last")),
        ("pages = { next_token = 'meta.next', param = 'after' }", NextToken("meta.next", "after")),
        ("pages = 'next_link'", NextLink()),
        ("pages = { next_link = 'links.next' }", NextLink("links.next")),
        ("pages = { after_id = 'min' }", AfterId("min")),
    ],
)
def test_every_way_of_paging_can_be_written(written: str, meant: object) -> None:
    (found,) = read_toml(f"{API}{written} }}\nread = 'Article'\n".encode())
    assert found.finders[0].pages == meant  # type: ignore[attr-defined]


def test_secrets_can_be_written_wherever_they_may_stand() -> None:
    parts = (
        "params = { k = { env = 'A' } }, headers = { X = { env = 'B' } }, json = { v = { env = 'C' } }, method = 'POST'"
    )
    auth = "auth = { basic = { user = 'me', password = { env = 'D' } } }"
    (found,) = read_toml(f"{API}{parts} }}\n{auth}\n".encode())
    api = found.finders[0]
    assert isinstance(api, Api)
    assert (api.params, api.headers, api.json) == ({"k": env("A")}, {"X": env("B")}, {"v": env("C")})
    assert found.auth == Basic("me", env("D"))


def test_all_policies_can_be_written() -> None:
    (found,) = read_toml(
        b"""
        [source.shelves]
        find = { urls = ["https://books.example/shelf/1", "https://books.example/shelf/2"] }
        identity = { drop = ["ref"], slash = true }
        pace = { concurrency = 2, delay = "1s" }
        deletion = { suspect_after = 3 }
        hosts = ["cdn.books.example"]
        order = "observed"
        forced_looks = 0.5
        full_scan = "1d"
        contract = "freeze"
        allow_private = true
        max_attempts = 2
        max_wait = 60
        max_age = "2d"
        """
    )
    example = typing_examples.shelves
    assert (found.identity, found.pace, found.deletion) == (example.identity, example.pace, example.deletion)
    assert (found.find, found.hosts) == (example.find, example.hosts)
    assert (found.contract, found.allow_private, found.max_attempts, found.max_wait) == ("freeze", True, 2, 60)


def test_each_finder_has_a_key() -> None:
    (found,) = read_toml(
        b"""
        [source.s]
        find = [{ sitemap = "https://a.example/s" }, { feed = "https://a.example/f", skip = "x" },
                { urls = ["https://a.example/u"], name = "mine" }, { auto = "https://a.example/" }]
        """
    )
    assert [type(item) for item in found.finders] == [Sitemap, Feed, Urls, Auto]
    assert [item.stream for item in found.finders][2] == "mine"
    assert found.records == (Article.__spec__,)


def test_a_price_can_be_a_default() -> None:
    text = RECORD + 'fields.p = { type = "Price", default = { amount = "9.90", currency = "EUR" } }\n' + SOURCE
    (found,) = read_toml((text + 'read = "R"\n').encode())
    default = found.records[0].field("p").default
    assert isinstance(default, Price)
    assert (str(default.amount), default.currency) == ("9.90", "EUR")


@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [
        ("[sorce.x]\n", "", "Did you mean 'source'?"),
        ("[source]\nx = 1\n", "source.x", "[source.x]"),
        ("source = 1\n", "source", "[source]"),
        ("[source.s]\n", "source.s", "find ="),
        (SOURCE + "curency = 'GBP'\n", "source.s", "Did you mean 'currency'?"),
        (SOURCE + "zone = 3\n", "source.s.zone", "a text"),
        (SOURCE + "pace = 3\n", "source.s.pace", "[source.s.pace]"),
        (SOURCE + "pace = { delai = 3 }\n", "source.s.pace", "Did you mean 'delay'?"),
        (SOURCE + "pace = { delay = '-3s' }\n", "source.s.pace.delay", "10m"),
        (SOURCE + "max_attempts = '5'\n", "source.s.max_attempts", "a whole number"),
        (SOURCE + "contract = 'frozen'\n", "source.s.contract", "Did you mean 'freeze'?"),
        (SOURCE + "read = 'Bok'\n", "source.s.read", "Article"),
        (SOURCE + "read = [3]\n", "source.s.read", "Article"),
        (SOURCE + "page_id = 'nothing'\n", "source.s.page_id", "title"),
        (SOURCE + "page_id = { match = '(' }\n", "source.s.page_id.match", "regular expression"),
        (SOURCE + "page_id = { url = '(' }\n", "source.s.page_id", "match"),
        (SOURCE + "auth = { env = 'TOKEN' }\n", "source.s.auth", "bearer"),
        (SOURCE + "auth = { bearer = 'sesame' }\n", "Bearer.token", "env"),
        ("[source.s]\nfind = 'https://a.example'\n", "source.s.find", "source.s.find"),
        ("[source.s]\nfind = { sitmap = 'https://a.example' }\n", "source.s.find", "Did you mean 'sitemap'?"),
        ("[source.s]\nfind = { sitemap = 'https://a.example', feed = 'x' }\n", "source.s.find", "one"),
        ("[source.s]\nfind = [{ sitemap = 'https://a.example', mach = 'x' }]\n", "source.s.find[0]", "'match'"),
        ("[source.s]\nfind = { sitemap = ['https://a.example'] }\n", "source.s.find.url", "a text"),
        ("[source.s]\nfind = { api = 'https://a.example' }\n", "source.s.find.id", "link="),
        (API + "pages = 'ofset' }\n", "source.s.find.pages", "Did you mean 'offset'?"),
        (API + "pages = { offset = 'o', siz = 3 } }\n", "source.s.find.pages", "Did you mean 'size'?"),
        (API + "pages = 'next_token' }\n", "source.s.find.pages", "token"),
        (API + "since = { overlap = '1m' } }\n", "source.s.find.since", "param"),
        (API + "since = { param = 's', mising = 'x' } }\n", "source.s.find.since", "Did you mean 'missing'?"),
        (API + "headers = { Cookie = 'sesame' } }\n", "source.s.find.headers.Cookie", "env"),
        ("[source.s]\nfind = { keywords = ['a'], every = 'day' }\n", "source.s.find", "Urls("),
        ("[source.'a b']\nfind = { auto = 'https://a.example/' }\n", "source.a b", "letters"),
        ("[record.R]\nkey = 'id'\nfields.id = { type = 'str' }\n", "record.R.table", "table="),
        ("[record.R]\ntable = 't'\nkey = 'idd'\nfields.id = { type = 'str' }\n", "record.R.key", "'id'"),
        ("[record.R]\ntabel = 't'\n", "record.R", "Did you mean 'table'?"),
        ("[record.Article]\ntable = 't'\n", "record.Article", "Book"),
        ("[record.R]\ntable = 3\nkey = 'id'\nfields.id = { type = 'str' }\n", "record.R.table", "a text"),
        (RECORD + "fields.x = 'str'\n", "record.R.fields.x", "[record.R.fields.x]"),
        (RECORD + "fields.x = { css = 'p' }\n", "record.R.fields.x", "type ="),
        (RECORD + "fields.x = { type = 'string' }\n", "record.R.fields.x.type", "Did you mean 'str'?"),
        (RECORD + "fields.x = { type = 'prise' }\n", "record.R.fields.x.type", "Did you mean 'Price'?"),
        (RECORD + "fields.x = { type = 'datetime' }\n", "record.R.fields.x.type", "Moment"),
        (RECORD + "fields.x = { type = '__import__(\"os\")' }\n", "record.R.fields.x.type", "Allowed"),
        (RECORD + "fields.x = { type = 'str |' }\n", "record.R.fields.x.type", "Allowed"),
        (RECORD + "fields.x = { type = 'str', ccs = 'p' }\n", "record.R.fields.x", "Did you mean 'css'?"),
        (RECORD + "fields.x = { type = 'str', css = 'p', xpath = '//p' }\n", "record.R.fields.x", "one selector"),
        (RECORD + "fields.x = { type = 'str', css = 3 }\n", "record.R.fields.x", "selector"),
        (RECORD + "fields.x = { type = 'str', css = 'p[' }\n", "record.R.fields.x", "CSS"),
        (RECORD + "fields.x = { type = 'str', names = [] }\n", "record.R.fields.x", "names("),
        (RECORD + "fields.x = { type = 'int', default = 'x' }\n", "record.R.fields.x", "default"),
        (RECORD + "fields.x = { type = 'Price', default = { amount = 'x' } }\n", "record.R.fields.x.default", "9.99"),
        ("x = \n", "", "toml.io"),
    ],
)
def test_a_mistake_is_one_error_with_its_path_and_what_is_allowed(text: str, place: str, hint: str) -> None:
    error = refusal(text)
    assert error.place == place
    assert hint in error.action


def test_a_file_is_named_in_front_of_the_path(tmp_path: Path) -> None:
    path = tmp_path / "recrawl.toml"
    path.write_text(SOURCE + "curency = 'GBP'\n")
    with pytest.raises(Misuse) as caught:
        load(path)
    assert caught.value.place == f"{path}: source.s"
    path.write_text(BOOKS)
    assert [item.name for item in load(path)] == ["books", "news"]
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(Misuse, match="no TOML"):
        load(path)
    path.write_text("# nothing\n")
    with pytest.raises(Misuse, match="no source"):
        load(path)
