"""The HTTP service, over a real socket."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest
import zstandard

from recrawl import Price, Record, Source, Urls
from recrawl.operate import tokens as operate_tokens
from recrawl.operate.scopes import Scope
from recrawl.operate.work import work
from recrawl.service.server import Address, serve
from recrawl.store import dead, tokens
from recrawl.store.database import Store
from tests.support.stores import one, rows


class Lamp(Record, table="lamps", key="sku"):
    sku: str
    title: str
    price: Price | None


LAMPS = Source("lamps", find=Urls(["https://lamps.example/"]), read=Lamp, page_id="sku", currency="CNY")


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: Any


class Service:
    """A service in a thread of its own; each call is one request over the network."""

    def __init__(self, store: Store, **options: Any) -> None:
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self.url = ""
        self._thread = threading.Thread(target=self._run, args=(store, options), daemon=True)
        self._thread.start()
        assert self._ready.wait(20)

    def _run(self, store: Store, options: dict[str, Any]) -> None:
        def ready(url: str) -> None:
            self.url = url
            self._ready.set()

        async def main() -> None:
            self._stop = asyncio.Event()
            await serve(store, {"lamps": LAMPS}, Address(port=0), ready=ready, stop=self._stop, **options)

        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(main())

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(20)

    def call(self, method: str, path: str, **options: Any) -> Answer:
        async def ask() -> Answer:
            async with (
                aiohttp.ClientSession() as session,
                session.request(method, self.url + path, **options) as answer,
            ):
                data = await answer.read()
                return Answer(answer.status, dict(answer.headers), json.loads(data) if data else None)

        return asyncio.run(ask())

    def push(self, data: Any, kind: str = "application/json", source: str = "lamps", **headers: str) -> Answer:
        body = data if isinstance(data, bytes | str) or hasattr(data, "__aiter__") else json.dumps(data)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.call("POST", f"/v1/sources/{source}/records", data=body, headers={"Content-Type": kind} | named)


@pytest.fixture
def service(store: Store) -> Iterator[Service]:
    service = Service(store)
    yield service
    service.close()


def lamp(number: int) -> dict[str, Any]:
    return {"sku": f"s{number}", "title": f"Lamp {number}", "price": "¥5.00"}


class TestPushing:
    @pytest.mark.parametrize(
        ("data", "kind", "count"),
        [
            (lamp(1), "application/json", 1),
            ([lamp(1), lamp(2)], "application/json; charset=utf-8", 2),
            ('{"sku": "a"}\n\n{"sku": "b"}\r\n{"sku": "c"}', "application/x-ndjson", 3),
            ("", "application/x-ndjson", 0),
            ([], "application/json", 0),
        ],
    )
    def test_an_object_an_array_or_lines_are_taken_in(
        self, service: Service, store: Store, data: Any, kind: str, count: int
    ) -> None:
        answer = service.push(data, kind)

        assert answer.status == 202
        assert (answer.body["accepted"], answer.body["dead"]) == (count, 0)
        assert one(store, "SELECT coalesce(sum(records), 0) FROM pushes") == count

    @pytest.mark.parametrize(
        ("encoding", "compress"),
        [("gzip", gzip.compress), ("zstd", zstandard.compress), ("zstd", lambda data: zstandard.compress(data) * 2)],
    )
    def test_compressed_bodies_are_taken_in(self, service: Service, encoding: str, compress: Any) -> None:
        lines = b"".join(json.dumps(lamp(number)).encode() + b"\n" for number in range(1000))

        answer = service.push(compress(lines), "application/x-ndjson", Content_Encoding=encoding)

        assert answer.status == 202
        assert answer.body["accepted"] % 1000 == 0
        assert answer.body["accepted"] > 0

    def test_a_line_that_is_no_json_is_a_dead_letter_and_the_rest_is_taken_in(
        self, service: Service, store: Store
    ) -> None:
        answer = service.push('{"sku": "a"}\n{"sku": \n{"sku": "b"}', "application/x-ndjson")

        assert (answer.status, answer.body["accepted"], answer.body["dead"]) == (202, 2, 1)
        (letter,) = dead.letters(store, dead.Selection("lamps"))
        assert letter.raw == b'{"sku": \n'

    def test_digits_of_long_numbers_are_kept(self, service: Service, store: Store) -> None:
        service.push(b'[{"sku": "a", "title": 12345678901234567890123}]')

        data = rows(store, "SELECT data FROM pushes")[0]["data"]
        assert b"12345678901234567890123" in zstandard.decompress(bytes(data))

    def test_the_same_key_again_takes_nothing_in(self, service: Service, store: Store) -> None:
        first = service.push([lamp(1)], Idempotency_Key="k1")
        again = service.push([lamp(1)], Idempotency_Key="k1")
        other = service.push([lamp(2)], Idempotency_Key="k1")

        assert (first.body["repeated"], again.body["repeated"]) == (False, True)
        assert first.body["tasks"] == again.body["tasks"]
        assert other.status == 409
        assert one(store, "SELECT count(*) FROM tasks") == 1

    def test_a_large_push_sent_again_with_its_key_takes_nothing_in(self, service: Service, store: Store) -> None:
        lines = "\n".join(json.dumps(lamp(number)) for number in range(12_000))

        first = service.push(lines, "application/x-ndjson", Idempotency_Key="big")
        again = service.push(lines, "application/x-ndjson", Idempotency_Key="big")

        assert first.body == again.body | {"repeated": False}
        assert one(store, "SELECT sum(records) FROM pushes") == 12_000

    def test_with_too_much_waiting_a_push_is_told_to_come_later(self, store: Store) -> None:
        service = Service(store, most_waiting=2)
        answers = [service.push(lamp(number)) for number in range(3)]
        service.close()

        assert [answer.status for answer in answers] == [202, 202, 429]
        assert int(answers[2].headers["Retry-After"]) > 0
        assert one(store, "SELECT sum(records) FROM pushes") == 2

    @pytest.mark.parametrize(
        ("query", "status"), [("queue=high&expires_in=2h", 202), ("queue=urgent", 422), ("expires_in=soon", 422)]
    )
    def test_queue_and_expiry_are_checked(self, service: Service, query: str, status: int) -> None:
        answer = service.call("POST", f"/v1/sources/lamps/records?{query}", json=lamp(1))

        assert answer.status == status

    def test_a_task_tells_how_many_records_wait(self, service: Service) -> None:
        (task,) = service.push([lamp(1), lamp(2)]).body["tasks"]

        answer = service.call("GET", f"/v1/tasks/{task}")

        assert (answer.body["state"], answer.body["counts"]["records"]) == ("pending", 2)


class TestHostileBodies:
    @pytest.mark.parametrize(
        ("data", "kind", "headers", "status"),
        [
            (b"{", "application/json", {}, 400),
            (b"", "application/json", {}, 400),
            (b"[1, NaN]", "application/json", {}, 400),
            (b"[" * 100_000, "application/json", {}, 400),
            (b'{"a":' * 100_000, "application/json", {}, 400),
            (b"\xff\xfe{}", "application/json", {}, 400),
            (b'"text"', "application/json", {}, 400),
            (b"not gzip", "application/x-ndjson", {"Content_Encoding": "gzip"}, 400),
            (
                gzip.compress(b'{"a": 1}\n' * 999, mtime=0)[:-9],
                "application/x-ndjson",
                {"Content_Encoding": "gzip"},
                400,
            ),
            (b"not zstd", "application/x-ndjson", {"Content_Encoding": "zstd"}, 400),
            (zstandard.compress(b"{}" * 99)[:-3], "application/x-ndjson", {"Content_Encoding": "zstd"}, 400),
            (b"{}", "application/json", {"Content_Encoding": "br"}, 415),
            (b"a,b", "text/csv", {}, 415),
            (b"{}", "application/json", {"Idempotency_Key": "k" * 300}, 400),
        ],
    )
    def test_a_body_that_cannot_be_framed_is_refused_whole(
        self, service: Service, store: Store, data: bytes, kind: str, headers: dict[str, str], status: int
    ) -> None:
        answer = service.push(data, kind, **headers)

        assert answer.status == status, answer.body
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert {"title", "status", "detail"} <= answer.body.keys()
        assert one(store, "SELECT count(*) FROM pushes") == 0

    def test_a_source_that_is_not_declared_is_told_with_one_like_it(self, service: Service) -> None:
        answer = service.push(lamp(1), source="lamp")

        assert answer.status == 404
        assert "lamps" in answer.body["action"]

    @pytest.mark.parametrize(("encoding", "compress"), [("gzip", gzip.compress), ("zstd", zstandard.compress)])
    def test_a_body_that_grows_beyond_all_bounds_is_refused(
        self, service: Service, store: Store, encoding: str, compress: Any
    ) -> None:
        bomb = compress(b" " * 300_000_000)

        answer = service.push(bomb, "application/x-ndjson", Content_Encoding=encoding)

        assert answer.status == 413
        assert one(store, "SELECT count(*) FROM pushes") == 0

    def test_numbers_surrogates_and_nul_are_no_fault_of_ours(self, service: Service) -> None:
        answer = service.push(
            b'{"sku": "\\ud800"}\n{"sku": "\\u0000"}\n{"n": 1e999}\n{"n": ' + b"9" * 5000 + b"}", "application/x-ndjson"
        )

        assert answer.status == 202
        assert answer.body["accepted"] + answer.body["dead"] == 4


class TestTokens:
    def test_with_a_token_in_the_database_every_request_needs_one(self, store: Store) -> None:
        now = datetime.now(UTC)
        _, pusher = operate_tokens.create(store, "spider", (Scope.PUSH,), now=now, lasts=None)
        number, reader = operate_tokens.create(store, "reader", (Scope.READ,), now=now, lasts=None)
        service = Service(store)

        def as_(secret: str) -> dict[str, str]:
            return {"Authorization": f"Bearer {secret}"}

        without = service.push(lamp(1))
        unknown = service.push(lamp(1), **as_("recrawl_guess"))
        wrong = service.push(lamp(1), **as_(reader))
        right = service.push(lamp(1), **as_(pusher))
        reading = service.call("GET", "/v1/sources", headers=as_(reader))
        tokens.revoke(store, number, now)
        revoked = service.call("GET", "/v1/sources", headers=as_(reader))
        service.close()

        assert [without.status, unknown.status, wrong.status, right.status] == [401, 401, 403, 202]
        assert without.headers["WWW-Authenticate"] == "Bearer"
        assert (reading.status, revoked.status) == (200, 401)

    def test_the_first_token_counts_for_a_service_that_runs_already(self, store: Store) -> None:
        service = Service(store)
        assert service.push(lamp(1)).status == 202
        begun = datetime.now(UTC)
        operate_tokens.create(store, "spider", (Scope.PUSH,), now=begun, lasts=None)
        while (status := service.push(lamp(1)).status) == 202 and datetime.now(UTC) - begun < timedelta(seconds=20):
            pass
        service.close()
        assert status == 401

    def test_no_secret_is_in_the_database(self, store: Store) -> None:
        _, secret = operate_tokens.create(store, "x", (Scope.READ,), now=datetime.now(UTC), lasts=None)

        assert secret not in str(rows(store, "SELECT * FROM tokens"))


class TestReading:
    def test_sources_tell_what_waits(self, service: Service) -> None:
        service.push(lamp(1))

        (found,) = [one for one in service.call("GET", "/v1/sources").body if one["name"] == "lamps"]

        assert found["declared"]

    @pytest.mark.parametrize(
        "path", ["/v1/tasks/99", "/v1/dead-letters/99", "/v1/pages?source=lamps&id=x", "/v1/nothing"]
    )
    def test_what_is_not_there_is_a_problem(self, service: Service, path: str) -> None:
        answer = service.call("GET", path)

        assert answer.status == 404
        assert answer.headers["Content-Type"] == "application/problem+json"

    def test_letters_are_told_and_dropped(self, service: Service) -> None:
        service.push("{\n[1]\n}", "application/x-ndjson")

        told = service.call("GET", "/v1/dead-letters").body
        assert told["groups"][0]["count"] == len(told["letters"]) == 2
        first = service.call("GET", f"/v1/dead-letters/{told['letters'][0]['id']}").body
        assert first["raw"] == "{\n"
        assert service.call("POST", "/v1/dead-letters/drop", json={}).status == 422
        assert service.call("POST", "/v1/dead-letters/drop", json={"source": "lamps"}).body == {"dropped": 2}
        assert service.call("GET", "/v1/dead-letters").body == {"groups": [], "letters": []}

    def test_letters_of_renamed_fields_are_begun_anew_once(self, service: Service, store: Store) -> None:
        service.push({"sku": "a", "name": "Lamp"})
        asyncio.run(work(store, [LAMPS]))

        asked = {"source": "lamps", "map": {"name": "title"}}
        first = service.call("POST", "/v1/dead-letters/replay", json=asked)
        again = service.call("POST", "/v1/dead-letters/replay", json=asked)
        asyncio.run(work(store, [LAMPS]))

        assert first.body == {"pushed": 1, "pages": 0, "busy": 0, "rest": 0}
        assert again.body == {"pushed": 0, "pages": 0, "busy": 1, "rest": 0}
        assert one(store, "SELECT title FROM lamps") == "Lamp"

    def test_health_is_told(self, service: Service) -> None:
        assert service.call("GET", "/healthz").body == {"ok": True}
        assert service.call("GET", "/readyz").body == {"ok": True}
