"""The HTTP client against a server that misbehaves byte by byte."""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
import tracemalloc
import zlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recrawl.fetch.guard import AddressRule
from recrawl.fetch.http import USER_AGENT, HttpClient
from recrawl.fetch.limits import Limits
from recrawl.model.fetched import Answer, Failure, FailureKind, Hop, Request, Validators
from tests.support.hostile import Hostile, answer, closes, drips, hangs, head, resets, sends

NOW = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
PRIVATE = AddressRule(allow_private=True)
SMALL = Limits(seconds=0.3, wire_bytes=100_000, body_bytes=200_000, header_bytes=4_000, header_count=20, redirects=3)


def client(limits: Limits = SMALL, allow: AddressRule = PRIVATE, concurrency: int = 100) -> HttpClient:
    return HttpClient(now=lambda: NOW, allow=allow, limits=limits, concurrency=concurrency)


@pytest.fixture
async def server() -> AsyncIterator[Hostile]:
    async with Hostile() as hostile:
        yield hostile


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    async with client() as one:
        yield one


async def failure(http: HttpClient, request: Request | str) -> Failure:
    came = await http.fetch(Request(request) if isinstance(request, str) else request)
    assert isinstance(came, Failure), came
    assert came.fetched_at == NOW
    return came


async def answered(http: HttpClient, request: Request | str) -> Answer:
    came = await http.fetch(Request(request) if isinstance(request, str) else request)
    assert isinstance(came, Answer), came
    assert came.fetched_at == NOW
    return came


# Connections


async def test_a_name_that_does_not_resolve_is_an_unknown_host(http: HttpClient) -> None:
    failed = await failure(http, "http://nowhere.invalid/page")
    assert failed.kind is FailureKind.UNKNOWN_HOST
    assert failed.message.startswith("http://nowhere.invalid/page: ")


@pytest.mark.parametrize("host", ["a" * 64 + ".example", "a..example"])
async def test_a_name_that_cannot_be_looked_up_is_an_unknown_host(http: HttpClient, host: str) -> None:
    assert (await failure(http, f"http://{host}/")).kind is FailureKind.UNKNOWN_HOST


async def test_a_closed_port_is_a_refusal(http: HttpClient) -> None:
    async with Hostile() as gone:
        url = gone.url
    assert (await failure(http, url)).kind is FailureKind.REFUSED


@pytest.mark.parametrize("act", [closes, resets])
@pytest.mark.parametrize("first", [b"", b"HTT", b"HTTP/1.1 200 OK\r\nContent-"])
async def test_a_connection_that_breaks_before_the_answer_is_a_refusal(
    server: Hostile, http: HttpClient, act: object, first: bytes
) -> None:
    url = server.on("/", sends(first), act)  # type: ignore[arg-type]
    assert (await failure(http, url)).kind is FailureKind.REFUSED


async def test_a_post_is_never_sent_twice(server: Hostile, http: HttpClient) -> None:
    url = server.on("/paid", closes)
    assert (await failure(http, Request(url, method="POST", body=b"x"))).kind is FailureKind.REFUSED
    assert len(server.got) == 1


async def test_silence_is_a_time_out(server: Hostile, http: HttpClient) -> None:
    assert (await failure(http, server.on("/", hangs))).kind is FailureKind.TIMEOUT


@pytest.mark.parametrize(
    ("before", "piece"),
    [
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nX: ", b"a"),
        (head(200, "Content-Length: 50000"), b"a"),
        (head(200, "Transfer-Encoding: chunked"), b"1\r\na\r\n"),
        (head(200), b"a"),
    ],
)
async def test_a_slow_drip_ends_at_the_total_time(
    server: Hostile, http: HttpClient, before: bytes, piece: bytes
) -> None:
    failed = await failure(http, server.on("/", sends(before), drips(piece)))
    assert failed.kind is FailureKind.TIMEOUT
    assert SMALL.seconds <= failed.elapsed < SMALL.seconds + 2


async def test_the_time_of_all_hops_is_bounded_together(server: Hostile, http: HttpClient) -> None:
    url = server.on("/a", drips(b"HTTP/1.1 100 Continue\r\n\r\n"))
    first = server.on("/", sends(answer(302, f"Location: {url}")))
    failed = await failure(http, first)
    assert failed.kind is FailureKind.TIMEOUT
    assert failed.elapsed < SMALL.seconds + 2
    assert failed.hops == (Hop(302, first, url),)


def tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Path(__file__).parent / "support" / "localhost.pem")
    return context


async def test_a_certificate_nobody_vouches_for_is_named_as_the_reason(http: HttpClient) -> None:
    async with Hostile(tls=tls()) as secure:
        failed = await failure(http, secure.on("/", sends(answer(200))))
    assert failed.kind is FailureKind.TLS
    assert "certificate is not valid: self-signed certificate" in failed.message
    assert secure.got == []


async def test_plain_http_on_a_secure_port_is_a_tls_failure(http: HttpClient) -> None:
    async def answers_at_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(400))
        writer.close()

    async with await asyncio.start_server(answers_at_once, "127.0.0.1", 0) as plain:
        failed = await failure(http, f"https://127.0.0.1:{plain.sockets[0].getsockname()[1]}/")
    assert failed.kind is FailureKind.TLS
    assert "no secure connection: " in failed.message


async def test_requests_wait_for_a_free_connection_outside_of_their_time(server: Hostile) -> None:
    urls = [server.on(f"/{n}", hangs) for n in range(3)]
    async with client(concurrency=1) as http:
        failures = await asyncio.gather(*(failure(http, url) for url in urls))
    assert [failed.kind for failed in failures] == [FailureKind.TIMEOUT] * 3
    assert len(server.got) == 3


# The address guard


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0x7f.1", "2130706433", "[::ffff:127.0.0.1]", "[::1]"])
async def test_a_private_address_is_refused_at_connect(server: Hostile, host: str) -> None:
    async with client(allow=AddressRule()) as http:
        failed = await failure(http, f"http://{host}:{server.port}/")
    assert failed.kind is FailureKind.FORBIDDEN_ADDRESS
    assert "allow_private=True" in failed.message
    assert server.connections == 0


async def test_a_host_that_the_user_named_may_be_private(server: Hostile) -> None:
    url = server.on("/", sends(answer(200, body=b"mine")))
    async with client(allow=AddressRule(hosts=frozenset({"127.0.0.1"}))) as http:
        assert (await answered(http, url)).body == b"mine"


async def test_a_redirect_from_a_named_host_to_a_private_address_is_refused(server: Hostile) -> None:
    other = f"http://localhost:{server.port}/inside"
    first = server.on("/", sends(answer(302, f"Location: {other}")))
    server.on("/inside", sends(answer(200, body=b"secret")))
    async with client(allow=AddressRule(hosts=frozenset({f"127.0.0.1:{server.port}"}))) as http:
        failed = await failure(http, first)
    assert failed.kind is FailureKind.FORBIDDEN_ADDRESS
    assert failed.hops == (Hop(302, first, other),)
    assert [got.target for got in server.got] == [b"/"]


async def test_an_open_connection_of_a_named_host_serves_no_other_name(server: Hostile) -> None:
    rule = AddressRule(hosts=frozenset({"localhost"}))
    server.on("/", sends(answer(200)))
    async with client(allow=rule) as http:
        await answered(http, f"http://localhost:{server.port}/")
        assert (await failure(http, f"http://127.0.0.1:{server.port}/")).kind is FailureKind.FORBIDDEN_ADDRESS


# Bounds and broken answers


@pytest.mark.parametrize(
    "raw",
    [
        b"this is no http\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.9\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nNo colon here\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n",
    ],
)
async def test_what_is_not_http_is_a_protocol_failure(server: Hostile, http: HttpClient, raw: bytes) -> None:
    failed = await failure(http, server.on("/", sends(raw), closes))
    assert failed.kind is FailureKind.PROTOCOL


@pytest.mark.parametrize(
    "lines",
    [
        ["X: " + "a" * 5_000],
        ["X" * 5_000 + ": a"],
        [f"X-{n}: a" for n in range(30)],
        [f"X-{n}: {'a' * 500}" for n in range(10)],
    ],
)
async def test_headers_beyond_the_bounds_are_a_protocol_failure(
    server: Hostile, http: HttpClient, lines: list[str]
) -> None:
    failed = await failure(http, server.on("/", sends(answer(200, *lines))))
    assert failed.kind is FailureKind.PROTOCOL


@pytest.mark.parametrize("act", [closes, resets])
@pytest.mark.parametrize(
    "raw",
    [
        head(200, "Content-Length: 100") + b"x" * 50,
        head(200, "Content-Length: 100"),
        head(200, "Transfer-Encoding: chunked") + b"5\r\nabcde\r\n",
        head(200, "Transfer-Encoding: chunked") + b"5\r\nabc",
        head(200, "Transfer-Encoding: chunked"),
    ],
)
async def test_a_body_shorter_than_announced_is_truncated(
    server: Hostile, http: HttpClient, raw: bytes, act: object
) -> None:
    failed = await failure(http, server.on("/", sends(raw), act))  # type: ignore[arg-type]
    assert failed.kind is FailureKind.TRUNCATED


async def test_a_broken_chunk_ends_at_once(server: Hostile, http: HttpClient) -> None:
    url = server.on("/", sends(head(200, "Transfer-Encoding: chunked") + b"5\r\nabcde\r\n", b"zzz\r\n"), hangs)
    failed = await failure(http, url)
    assert failed.kind in {FailureKind.TRUNCATED, FailureKind.PROTOCOL}
    assert failed.elapsed < SMALL.seconds


async def test_a_body_up_to_the_end_of_the_connection_is_whole(server: Hostile, http: HttpClient) -> None:
    assert (await answered(http, server.on("/", sends(head(200), b"a", b"b"), closes))).body == b"ab"


@pytest.mark.parametrize(
    "raw",
    [
        head(200, "Content-Length: 100001"),
        head(200, "Transfer-Encoding: chunked") + b"ffff\r\n" + b"x" * 0xFFFF + b"\r\n" + b"ffff\r\n" + b"x" * 0xFFFF,
        head(200) + b"x" * 100_001,
    ],
)
async def test_a_body_over_the_bound_is_too_large(server: Hostile, http: HttpClient, raw: bytes) -> None:
    assert (await failure(http, server.on("/", sends(raw), hangs))).kind is FailureKind.TOO_LARGE


async def test_a_body_at_the_bound_is_taken(server: Hostile, http: HttpClient) -> None:
    body = b"x" * SMALL.wire_bytes
    assert (await answered(http, server.on("/", sends(answer(200, body=body))))).body == body


async def test_the_length_of_an_answer_to_head_is_no_body(server: Hostile, http: HttpClient) -> None:
    url = server.on("/", sends(head(200, "Content-Length: 999999999")))
    came = await answered(http, Request(url, method="HEAD"))
    assert (came.status, came.body, came.header("content-length")) == (200, b"", "999999999")


@pytest.mark.parametrize("status", [200, 204, 206, 299, 300, 400, 404, 410, 429, 500, 503, 999])
async def test_other_statuses_are_reported_as_they_are(server: Hostile, http: HttpClient, status: int) -> None:
    body = b"" if status == 204 else b"text"
    came = await answered(http, server.on("/", sends(answer(status, "Retry-After: 5", body=body))))
    assert (came.status, came.body, came.header("RETRY-AFTER")) == (status, body, "5")


# Content-Encoding


def squeezed(*parts: bytes, wbits: int = 31) -> bytes:
    made = b""
    for part in parts:
        packer = zlib.compressobj(wbits=wbits)
        made += packer.compress(part) + packer.flush()
    return made


TEXT = b"tide table " * 50
CODED = {
    "gzip": squeezed(TEXT),
    "x-gzip": squeezed(TEXT),
    "GZIP": squeezed(TEXT),
    "identity": TEXT,
    "": TEXT,
    "deflate": squeezed(TEXT, wbits=15),
    "deflate ": squeezed(TEXT, wbits=-15),
    "gzip, gzip": squeezed(squeezed(TEXT)),
    "deflate, gzip": squeezed(squeezed(TEXT, wbits=15)),
    "gzip ": squeezed(TEXT[:100], TEXT[100:]) + b"\0\0rubbish",
    "gzip, identity": squeezed(b"", TEXT, b""),
}


@pytest.mark.parametrize("coding", CODED)
async def test_content_encodings_are_undone(server: Hostile, http: HttpClient, coding: str) -> None:
    url = server.on("/", sends(answer(200, f"Content-Encoding: {coding}", body=CODED[coding])))
    assert (await answered(http, url)).body == TEXT


async def test_two_lines_of_content_encoding_count_as_one_list(server: Hostile, http: HttpClient) -> None:
    body = squeezed(squeezed(TEXT, wbits=15))
    url = server.on("/", sends(answer(200, "Content-Encoding: deflate", "Content-Encoding: gzip", body=body)))
    assert (await answered(http, url)).body == TEXT


@pytest.mark.parametrize("wbits", [31, 15, -15])
@pytest.mark.parametrize("keep", [-1, 12, 5])
async def test_a_truncated_gzip_is_incomplete(server: Hostile, http: HttpClient, wbits: int, keep: int) -> None:
    coding = "gzip" if wbits == 31 else "deflate"
    url = server.on("/", sends(answer(200, f"Content-Encoding: {coding}", body=squeezed(TEXT, wbits=wbits)[:keep])))
    assert (await failure(http, url)).kind is FailureKind.TRUNCATED


async def test_a_truncated_second_gzip_member_is_incomplete(server: Hostile, http: HttpClient) -> None:
    url = server.on("/", sends(answer(200, "Content-Encoding: gzip", body=squeezed(TEXT, TEXT)[:-3])))
    assert (await failure(http, url)).kind is FailureKind.TRUNCATED


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("br", b"\x8b\x01\x80text\x03"),
        ("snappy", TEXT),
        ("gzip, gzip, gzip, gzip, gzip", TEXT),
        ("gzip", TEXT),
        ("gzip", squeezed(TEXT)[:-8] + b"\0" * 8),
        ("deflate", b"\xff" * 40),
        ("gzip", squeezed(*[b""] * 10_002)),
    ],
)
async def test_an_unknown_or_broken_encoding_is_undecodable(server: Hostile, coding: str, body: bytes) -> None:
    url = server.on("/", sends(answer(200, f"Content-Encoding: {coding}", body=body)))
    async with client(Limits(seconds=5)) as http:
        assert (await failure(http, url)).kind is FailureKind.UNDECODABLE


@pytest.mark.parametrize("coding", ["gzip", "deflate", "gzip, gzip"])
async def test_a_bomb_stays_bounded(server: Hostile, coding: str) -> None:
    bomb = b"\0" * 60_000_000
    body = squeezed(bomb, wbits=15 if coding == "deflate" else 31)
    url = server.on(
        "/", sends(answer(200, f"Content-Encoding: {coding}", body=gzip.compress(body) if "," in coding else body))
    )
    del bomb
    async with client() as http:
        tracemalloc.start()
        try:
            assert (await failure(http, url)).kind is FailureKind.TOO_LARGE
            assert tracemalloc.get_traced_memory()[1] < 2_000_000
        finally:
            tracemalloc.stop()


async def test_an_empty_body_needs_no_decoding(server: Hostile, http: HttpClient) -> None:
    assert (await answered(http, server.on("/", sends(answer(200, "Content-Encoding: gzip"))))).body == b""


# Redirects


@pytest.mark.parametrize("status", [302, 303, 307])
async def test_temporary_redirects_are_followed_and_kept(server: Hostile, http: HttpClient, status: int) -> None:
    first = server.on("/a/b?x", sends(answer(status, "Location: ../c?y#part")))
    server.on("/c?y", sends(answer(200, body=b"there")))
    came = await answered(http, first)
    assert (came.status, came.body, came.url, came.final_url) == (200, b"there", first, f"{server.url}/c?y")
    assert came.hops == (Hop(status, first, f"{server.url}/c?y"),)
    assert came.location is None


@pytest.mark.parametrize("status", [301, 308])
async def test_a_permanent_redirect_ends_the_request(server: Hostile, http: HttpClient, status: int) -> None:
    first = server.on("/old", sends(answer(status, "Location: //127.0.0.1/new page#x", body=b"moved")))
    came = await answered(http, first)
    assert (came.status, came.location, came.final_url) == (status, "http://127.0.0.1/new%20page", first)
    assert len(server.got) == 1


async def test_a_permanent_redirect_after_a_temporary_one_ends_there(server: Hostile, http: HttpClient) -> None:
    first = server.on("/a", sends(answer(302, "Location: /b")))
    server.on("/b", sends(answer(301, "Location: /c")))
    came = await answered(http, first)
    assert (came.status, came.location, len(came.hops)) == (301, f"{server.url}/c", 1)


async def test_a_loop_of_redirects_ends(server: Hostile, http: HttpClient) -> None:
    first = server.on("/a", sends(answer(302, "Location: /b")))
    server.on("/b", sends(answer(302, "Location: /a")))
    failed = await failure(http, first)
    assert failed.kind is FailureKind.TOO_MANY_REDIRECTS
    assert len(server.got) == 2


async def test_endless_redirects_end_at_the_bound(server: Hostile, http: HttpClient) -> None:
    for n in range(9):
        server.on(f"/{n}", sends(answer(302, f"Location: /{n + 1}")))
    failed = await failure(http, f"{server.url}/0")
    assert failed.kind is FailureKind.TOO_MANY_REDIRECTS
    assert len(server.got) == SMALL.redirects + 1


async def test_as_many_redirects_as_allowed_are_followed(server: Hostile, http: HttpClient) -> None:
    for n in range(3):
        server.on(f"/{n}", sends(answer(302, f"Location: /{n + 1}")))
    server.on("/3", sends(answer(200)))
    assert len((await answered(http, f"{server.url}/0")).hops) == 3


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "line",
    [
        "X: y",
        "Location:",
        "Location: javascript:alert(1)",
        "Location: ftp://h/",
        "Location: http://",
        "Location: http://a b/",
    ],
)
async def test_a_redirect_to_nowhere_is_a_bad_redirect(
    server: Hostile, http: HttpClient, status: int, line: str
) -> None:
    assert (await failure(http, server.on("/", sends(answer(status, line))))).kind is FailureKind.BAD_REDIRECT


@pytest.mark.parametrize(
    ("raw", "target"),
    [
        ("/é".encode(), b"/%C3%A9"),
        ("/é".encode("latin-1"), b"/%E9"),
        (b"/%e9 %41|", b"/%e9%20%41|"),
        (b"  /x\t", b"/x"),
    ],
)
async def test_odd_bytes_of_a_location_come_back_as_they_are(
    server: Hostile, http: HttpClient, raw: bytes, target: bytes
) -> None:
    await answered(http, server.on("/", sends(answer(302, b"Location: " + raw))))
    assert server.got[-1].target == target


async def test_before_each_hop_the_new_host_is_asked_for(server: Hostile, http: HttpClient) -> None:
    first = server.on("/a", sends(answer(302, "Location: /b")))
    server.on("/b", sends(answer(307, "Location: /c")))
    server.on("/c", sends(answer(200)))
    asked = []

    async def before_hop(url: str) -> str | None:
        asked.append((url, len(server.got)))
        return None

    assert isinstance(await http.fetch(Request(first), before_hop), Answer)
    assert asked == [(f"{server.url}/b", 1), (f"{server.url}/c", 2)]


async def test_a_hop_that_robots_forbids_is_not_made(server: Hostile, http: HttpClient) -> None:
    first = server.on("/a", sends(answer(302, "Location: /b")))

    async def before_hop(url: str) -> str | None:
        return "robots.txt does not allow it"

    failed = await http.fetch(Request(first), before_hop)
    assert isinstance(failed, Failure)
    assert (failed.kind, len(server.got)) == (FailureKind.ROBOTS, 1)
    assert "robots.txt does not allow it" in failed.message


@pytest.mark.parametrize(("status", "method"), [(302, "GET"), (303, "GET"), (307, "POST")])
async def test_a_post_becomes_a_get_where_the_redirect_says_so(
    server: Hostile, http: HttpClient, status: int, method: str
) -> None:
    first = server.on("/a", sends(answer(status, "Location: /b")))
    headers = (("Content-Type", "application/json"), ("X-Key", "k"))
    await answered(http, Request(first, headers=headers, method="POST", body=b"{}"))
    last = server.got[-1]
    assert (last.method, last.body) == (method, b"{}" if method == "POST" else b"")
    assert last.header("content-type") == (b"application/json" if method == "POST" else None)
    assert last.header("x-key") == b"k"


async def test_keys_for_one_site_are_not_given_to_another(server: Hostile, http: HttpClient) -> None:
    other = f"http://localhost:{server.port}/b"
    first = server.on("/a", sends(answer(302, f"Location: {other}")))
    headers = (
        ("Authorization", "Bearer s3cret"),
        ("X-Api-Key", "s3cret"),
        ("Cookie", "a=s3cret"),
        ("Accept", "text/x"),
    )
    await answered(http, Request(first, headers=headers))
    assert b"s3cret" not in b"".join(value for _, value in server.got[-1].headers)
    assert server.got[-1].header("accept") == b"text/x"
    assert server.got[0].header("x-api-key") == b"s3cret"


# What is sent


async def test_constant_headers_and_no_cookies(server: Hostile, http: HttpClient) -> None:
    url = server.on("/", sends(answer(200, "Set-Cookie: a=b; Path=/")))
    await answered(http, url)
    await answered(http, url)
    first, second = server.got
    assert first.headers == second.headers
    assert first.header("user-agent") == USER_AGENT.encode()
    assert first.header("accept-encoding") == b"gzip, deflate"
    assert first.header("accept-language") == b"*"
    assert first.header("cookie") is None
    assert server.connections == 1


ODD = {
    "/a b": b"/a%20b",
    "/é?q=ü": b"/%C3%A9?q=%C3%BC",
    "/%7euser/%C3%a9%2F": b"/%7euser/%C3%a9%2F",
    "/a%zz|^": b"/a%zz|^",
    "/?": b"/?",
    "/?a=1&&b=%20+;": b"/?a=1&&b=%20+;",
    "//double//": b"//double//",
    "/A/./b/../C": b"/A/C",
    "/p;v=1,2:@!$&'()*": b"/p;v=1,2:@!$&'()*",
    "/q?a='\"<>`{}": b"/q?a=%27%22%3C%3E`{}",
    "?only": b"/?only",
    "/x#part": b"/x",
    "/[y]?[z]": b"/[y]?[z]",
}


@pytest.mark.parametrize("path", ODD)
async def test_a_url_goes_on_the_wire_as_browsers_send_it(server: Hostile, http: HttpClient, path: str) -> None:
    came = await answered(http, server.url + path)
    assert server.got[-1].target == ODD[path]
    assert came.final_url == server.url + ODD[path].decode()


@pytest.mark.parametrize(
    "url", ["", "/page", "mailto:a@b.example", "http://", "http://a b/", "http://h/\ud800", "nonsense"]
)
async def test_what_is_no_web_url_is_a_bad_request(http: HttpClient, url: str) -> None:
    assert (await failure(http, url)).kind is FailureKind.BAD_REQUEST


@pytest.mark.parametrize("value", ["a\r\nInjected: 1", "a\0", "\x7f", "学", "a\nb"])
async def test_a_header_that_cannot_be_sent_is_a_bad_request(server: Hostile, http: HttpClient, value: str) -> None:
    failed = await failure(http, Request(server.url, headers=(("X-Odd", value),)))
    assert failed.kind is FailureKind.BAD_REQUEST
    assert server.got == []


async def test_a_password_in_a_url_is_sent_as_a_header_and_never_shown(server: Hostile, http: HttpClient) -> None:
    first = server.on("/a", sends(answer(302, "Location: /b")))
    server.on("/b", sends(answer(200)))
    came = await answered(http, first.replace("//", "//user:p%40ss@"))
    assert [got.header("authorization") for got in server.got] == [b"Basic dXNlcjpwQHNz"] * 2
    assert "p%40ss" not in repr((came.final_url, came.hops))
    server.on("/a", resets)
    failed = await failure(http, first.replace("//", "//user:p%40ss@"))
    assert "p%40ss" not in failed.message
    assert first in failed.message


# Validators


VALIDATORS = [
    b'W/"v1"',
    b"abcdef",
    b"'abcdef'",
    b'"a b"',
    b'"abc\xfcdef"',
    b'"\xc3\xbc"',
    b'"\x80\xff"',
    b'"a\tb"',
    b'"Sat, 16 Nov 2041 19:11:00 GMT"',
]


@pytest.mark.parametrize("etag", VALIDATORS)
async def test_validators_go_back_byte_for_byte(server: Hostile, http: HttpClient, etag: bytes) -> None:
    url = server.on("/", sends(answer(200, b"ETag: " + etag, b"Last-Modified: mer., 1 f\xe9vr. 2020", body=b"A")))
    came = await answered(http, url)
    server.on("/", sends(head(304)))
    again = await answered(http, Request(url, came.validators))
    assert server.got[-1].header("if-none-match") == etag
    assert server.got[-1].header("if-modified-since") == b"mer., 1 f\xe9vr. 2020"
    assert (again.status, again.conditional, came.conditional) == (304, True, False)


@pytest.mark.parametrize("etag", ["", '"a\x01"', '"a\x7f"', '"a\r\nX: 1"', '"学"', '"\udcfc"'])
async def test_a_validator_that_cannot_go_back_unchanged_is_not_sent(
    server: Hostile, http: HttpClient, etag: str
) -> None:
    url = server.on("/", sends(answer(200)))
    came = await answered(http, Request(url, Validators(etag=etag)))
    assert server.got[-1].header("if-none-match") is None
    assert not came.conditional


async def test_validators_are_for_the_first_hop_only(server: Hostile, http: HttpClient) -> None:
    first = server.on("/a", sends(answer(302, "Location: /b", 'ETag: "a"')))
    server.on("/b", sends(head(304, 'ETag: "b"')))
    came = await answered(http, Request(first, Validators('"a"', "Wed, 01 Jan 2020 00:00:00 GMT")))
    assert [got.header("if-none-match") for got in server.got] == [b'"a"', None]
    assert [got.header("if-modified-since") for got in server.got] == [b"Wed, 01 Jan 2020 00:00:00 GMT", None]
    assert (came.status, came.conditional) == (304, False)


async def test_validators_that_came_from_another_url_are_not_kept(server: Hostile, http: HttpClient) -> None:
    first = server.on("/a", sends(answer(302, "Location: /b")))
    server.on("/b", sends(answer(200, 'ETag: "b"', "Last-Modified: Wed, 01 Jan 2020 00:00:00 GMT")))
    came = await answered(http, first)
    assert came.header("etag") == '"b"'
    assert not came.validators


async def test_received_header_bytes_are_latin_1(server: Hostile, http: HttpClient) -> None:
    came = await answered(http, server.on("/", sends(answer(200, b"X-Odd: \xfc\xc3\xbc ", b"x-odd: 2"))))
    assert came.header("X-ODD") == "ü\u00c3\u00bc"
    assert [value for name, value in came.headers if name.lower() == "x-odd"] == ["ü\u00c3\u00bc", "2"]


# Connections that are used again


async def test_bytes_that_nobody_asked_for_are_not_the_next_answer(server: Hostile, http: HttpClient) -> None:
    first = server.on("/a", sends(answer(200, body=b"A"), answer(200, body=b"forged")))
    second = server.on("/b", sends(answer(200, body=b"B")))
    assert (await answered(http, first)).body == b"A"
    assert (await answered(http, second)).body == b"B"


async def test_late_bytes_on_an_idle_connection_are_not_the_next_answer(server: Hostile, http: HttpClient) -> None:
    gate, sent = asyncio.Event(), asyncio.Event()

    async def later(got: object, writer: asyncio.StreamWriter) -> None:
        await gate.wait()
        writer.write(answer(200, body=b"forged"))
        await writer.drain()
        sent.set()

    first = server.on("/a", sends(answer(200, body=b"A")), later)
    second = server.on("/b", sends(answer(200, body=b"B")))
    assert (await answered(http, first)).body == b"A"
    gate.set()
    await sent.wait()
    for _ in range(3):  # let the bytes arrive
        await asyncio.sleep(0)
    assert (await answered(http, second)).body == b"B"


async def test_a_connection_that_the_server_closed_meanwhile_is_replaced(server: Hostile, http: HttpClient) -> None:
    first = server.on("/a", sends(answer(200, body=b"A")), closes)
    assert (await answered(http, first)).body == b"A"
    assert (await answered(http, first)).body == b"A"


async def test_cancelling_a_fetch_cancels_it(server: Hostile) -> None:
    arrived = asyncio.Event()

    async def arrives(got: object, writer: asyncio.StreamWriter) -> None:
        arrived.set()

    async with client(Limits()) as http:
        task = asyncio.create_task(http.fetch(Request(server.on("/", arrives, hangs))))
        await arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_the_shared_scenarios_send_the_conditional_headers_that_they_must(
    cases: Path, server: Hostile, http: HttpClient
) -> None:
    scenarios = json.loads((cases / "http" / "scenarios.json").read_bytes())["scenarios"]
    checked = 0
    for scenario in scenarios:
        known = Validators()
        for step in scenario["steps"]:
            respond, expected = step["respond"], step["expect"].get("request_headers")
            lines = [
                f"{name}: {value}" for name, value in respond.get("headers", {}).items() if name != "Content-Length"
            ]
            body = str(respond.get("body", "")).encode()
            status = respond["status"]
            reply = head(status, *lines) if status == 304 else answer(status, *lines, body=body)
            url = server.on("/" + scenario["id"], sends(reply))
            came = await http.fetch(Request(url, known))
            if expected is not None:
                for name in ("If-None-Match", "If-Modified-Since"):
                    wanted = expected.get(name)
                    assert server.got[-1].header(name) == (wanted.encode("latin-1") if wanted else None), scenario["id"]
                    checked += 1
            if isinstance(came, Answer) and came.status in (200, 304):
                known = Validators(
                    came.validators.etag or known.etag, came.validators.last_modified or known.last_modified
                )
    assert checked
