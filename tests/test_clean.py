"""Records out of raw dicts, what is wrong with them, and what counts as a change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.clean.fingerprint import content_hash, settle_moments
from recrawl.clean.records import CleanContext, clean_record, clean_records
from recrawl.declare.specs import FieldSpec, Kind, RecordSpec, Selector, columns
from recrawl.model.record import FieldError, Json, RecordRow
from recrawl.model.values import Moment, Precision, Price, Stock

NOW = datetime(2026, 3, 4, 4, 0, tzinfo=UTC)
CONTEXT = CleanContext(NOW, "Asia/Shanghai", "CNY", "https://shop.example/list/")
ID = FieldSpec("id", Kind.STR)


def spec(*fields: FieldSpec, key: tuple[str, ...] = ("id",)) -> RecordSpec:
    return RecordSpec("Item", "items", key, (ID, *fields))


def row(raw: Mapping[str, object], *fields: FieldSpec, context: CleanContext = CONTEXT) -> RecordRow:
    found = clean_record(spec(*fields), {"id": "1", **raw}, context)
    assert isinstance(found, RecordRow), found
    return found


def value(kind: Kind, raw: object) -> Json:
    return row({"x": raw}, FieldSpec("x", kind)).data["x"]


def wrong(kind: Kind, raw: object, *, optional: bool = False, many: bool = False) -> FieldError:
    found = clean_record(spec(FieldSpec("x", kind, optional=optional, many=many)), {"id": "1", "x": raw}, CONTEXT)
    assert isinstance(found, list), found
    (error,) = found
    assert error.field == "x"
    assert error.message
    return error


class TestErrors:
    def test_every_wrong_field_is_named_with_its_value_and_kind(self) -> None:
        fields = (
            FieldSpec("n", Kind.INT),
            FieldSpec("p", Kind.PRICE),
            FieldSpec("t", Kind.MOMENT),
            FieldSpec("m", Kind.STR),
        )
        found = clean_record(spec(*fields), {"id": "1", "n": "twelve", "p": "价格面议", "t": "待定"}, CONTEXT)
        assert isinstance(found, list)
        assert [(each.field, each.kind, each.value) for each in found] == [
            ("n", "int_parsing", "twelve"),
            ("p", "price", "价格面议"),
            ("t", "moment", "待定"),
            ("m", "missing", ""),
        ]

    @pytest.mark.parametrize(
        ("kind", "raw", "error"),
        [
            (Kind.INT, 2**63, "less_than_equal"),
            (Kind.INT, -(2**63) - 1, "greater_than_equal"),
            pytest.param(Kind.INT, "9" * 5000, "int_parsing_size", id="digits"),
            pytest.param(Kind.INT, 10**6000, "less_than_equal", id="huge"),
            (Kind.INT, 1.5, "int_from_float"),
            (Kind.INT, "12 pieces", "int_parsing"),
            (Kind.INT, True, "int_type"),
            (Kind.FLOAT, float("nan"), "finite_number"),
            (Kind.FLOAT, "inf", "finite_number"),
            (Kind.FLOAT, True, "float_type"),
            (Kind.BOOL, "perhaps", "bool_parsing"),
            (Kind.DECIMAL, "NaN", "finite_number"),
            (Kind.DECIMAL, "1e999999", "out_of_range"),
            (Kind.DECIMAL, "abc", "decimal_parsing"),
            (Kind.DECIMAL, [], "decimal_type"),
            (Kind.PRICE, float("inf"), "finite_number"),
            (Kind.PRICE, {"amount": 1}, "price"),
            (Kind.MOMENT, "03/04/2026", "moment"),
            (Kind.MOMENT, {}, "moment"),
            (Kind.COUNT, "4.9分", "count"),
            (Kind.COUNT, str(2**70), "out_of_range"),
            (Kind.STOCK, {}, "stock"),
            (Kind.URL, "http://[", "url"),
            (Kind.URL, 5, "url"),
            (Kind.STR, {"a": 1}, "string_type"),
            (Kind.STR, True, "string_type"),
            pytest.param(Kind.STR, "x" * 1_000_001, "too_long", id="long"),
            pytest.param(Kind.TEXT, "<b>" * 5_001, "markup", id="tags"),
        ],
    )
    def test_what_is_not_of_the_kind_is_an_error_even_where_null_is_allowed(
        self, kind: Kind, raw: object, error: str
    ) -> None:
        if kind not in (Kind.PRICE, Kind.MOMENT, Kind.COUNT) or not isinstance(raw, str) or error == "out_of_range":
            assert wrong(kind, raw, optional=True).kind == error
        assert wrong(kind, raw).kind == error

    def test_a_list_is_bounded_and_each_item_is_checked(self) -> None:
        assert wrong(Kind.STR, ["x"] * 10_001, many=True).kind == "too_long"
        assert wrong(Kind.INT, ["1", "x"], many=True).kind == "int_parsing"

    def test_a_shown_value_is_short_and_storable(self) -> None:
        error = wrong(Kind.INT, "\x00\ud800" + "z" * 900)
        assert error.value.startswith("\ufffd\ufffdz")
        assert len(error.value) == 200

    @pytest.mark.parametrize("raw", [{}, {"id": None}, {"id": " "}])
    def test_a_record_without_a_key_is_an_error(self, raw: dict[str, object]) -> None:
        found = clean_record(spec(), raw, CONTEXT)
        assert isinstance(found, list)
        assert [(each.field, each.kind) for each in found] == [("id", "missing")]

    def test_a_key_that_no_index_holds_is_an_error(self) -> None:
        found = clean_record(spec(), {"id": "k" * 1_001}, CONTEXT)
        assert isinstance(found, list)
        assert found[0].kind == "too_long"


class TestValues:
    @pytest.mark.parametrize(
        ("kind", "raw", "want"),
        [
            (Kind.STR, "  a\u3000b ", "a\u3000b"),
            (Kind.STR, "a\x00b\ud83d", "a\ufffdb\ufffd"),
            (Kind.STR, "", ""),
            (Kind.STR, 12, "12"),
            (Kind.INT, "1,299", 1299),
            (Kind.INT, " １２ ", 12),
            (Kind.INT, 12.0, 12),
            (Kind.FLOAT, "1,299.5", 1299.5),
            (Kind.FLOAT, "12,5", 12.5),
            (Kind.FLOAT, "4.9分", 4.9),
            (Kind.FLOAT, "98%", 98.0),
            (Kind.FLOAT, 3, 3.0),
            (Kind.BOOL, "是", True),
            (Kind.BOOL, "No", False),
            (Kind.BOOL, 1, True),
            (Kind.DECIMAL, "9.90", "9.9"),
            (Kind.DECIMAL, 9.9, "9.9"),
            (Kind.DECIMAL, "-0.00", "0"),
            (Kind.DECIMAL, Decimal("1E+3"), "1000"),
            (Kind.COUNT, "1.2万+", 12000),
            (Kind.COUNT, 5.0, 5),
            (Kind.STOCK, "有货", "in"),
            (Kind.STOCK, Stock.LOW, "low"),
            (Kind.STOCK, False, "out"),
            (Kind.STOCK, 7, "in"),
            (Kind.STOCK, "???", "unknown"),
            (Kind.TEXT, "<p>Ａ&amp;B</p><p>c<b>d</b></p><script>x()</script>", "A&B cd"),
            (Kind.TEXT, "a &lt; b\n\n c", "a < b c"),
            (Kind.URL, "../a?b=1#c", "https://shop.example/a?b=1"),
        ],
    )
    def test_forms_that_mean_the_same_become_one_value(self, kind: Kind, raw: object, want: Json) -> None:
        found = value(kind, raw)
        assert found == want
        assert type(found) is type(want)

    @pytest.mark.parametrize(
        ("raw", "want"),
        [
            ("¥1,299.00", ("1299", "CNY")),
            ("12.50", ("12.5", "CNY")),
            ("US$5", ("5", "USD")),
            (12.3, ("12.3", "CNY")),
            (Price(Decimal("1.10"), "EUR"), ("1.1", "EUR")),
        ],
    )
    def test_a_price_fills_two_columns(self, raw: object, want: tuple[str, str]) -> None:
        data = row({"x": raw}, FieldSpec("x", Kind.PRICE)).data
        assert (data["x_amount"], data["x_currency"]) == want

    @pytest.mark.parametrize(
        ("raw", "want"),
        [
            ("2026-02-03", ("2026-02-02T16:00:00.000000Z", "day", "2026-02-03")),
            ("3小时前", ("2026-03-04T01:00:00.000000Z", "hour", "3小时前")),
            ("Feb 2026", ("2026-01-31T16:00:00.000000Z", "month", "Feb 2026")),
            (1770091506, ("2026-02-03T04:05:06.000000Z", "second", "1770091506")),
            (date(2026, 2, 3), ("2026-02-02T16:00:00.000000Z", "day", "2026-02-03")),
            (datetime.fromisoformat("2026-02-03"), ("2026-02-02T16:00:00.000000Z", "second", "2026-02-03T00:00:00")),
            (Moment(NOW, Precision.MINUTE, "x"), ("2026-03-04T04:00:00.000000Z", "minute", "x")),
        ],
    )
    def test_a_moment_fills_three_columns(self, raw: object, want: tuple[str, str, str]) -> None:
        data = row({"x": raw}, FieldSpec("x", Kind.MOMENT)).data
        assert (data["x"], data["x_precision"], data["x_text"]) == want

    def test_an_optional_time_that_is_unclear_is_null_and_keeps_its_text(self) -> None:
        data = row({"x": "待定"}, FieldSpec("x", Kind.MOMENT, optional=True)).data
        assert data == {"id": "1", "x": None, "x_precision": None, "x_text": "待定"}

    def test_an_optional_price_without_an_amount_is_null_not_zero(self) -> None:
        data = row({"x": "价格面议"}, FieldSpec("x", Kind.PRICE, optional=True)).data
        assert data == {"id": "1", "x_amount": None, "x_currency": None}

    def test_lists_stand_in_one_column(self) -> None:
        many = (
            FieldSpec("tags", Kind.STR, many=True),
            FieldSpec("prices", Kind.PRICE, many=True),
            FieldSpec("times", Kind.MOMENT, many=True),
            FieldSpec("none", Kind.INT, many=True, optional=True),
        )
        data = row({"tags": "one", "prices": ["¥1", "$2"], "times": ("2026",)}, *many).data
        assert data["tags"] == ["one"]
        assert data["prices"] == [{"amount": "1", "currency": "CNY"}, {"amount": "2", "currency": "USD"}]
        assert data["times"] == [{"at": "2025-12-31T16:00:00.000000Z", "precision": "year", "text": "2026"}]
        assert data["none"] is None

    def test_the_first_alias_that_holds_a_value_counts(self) -> None:
        price = FieldSpec("x", Kind.INT, selector=Selector("names", ("price", "salePrice")))
        assert row({"price": None, "salePrice": "5"}, price).data["x"] == 5
        assert row({"price": "4", "salePrice": "5"}, price).data["x"] == 4
        assert row({"x": "3"}, price).data["x"] == 3

    def test_a_default_stands_for_what_is_missing_or_blank(self) -> None:
        stars = FieldSpec("x", Kind.INT, has_default=True, default=0)
        assert [row(raw, stars).data["x"] for raw in ({}, {"x": None}, {"x": "  "}, {"x": "4"})] == [0, 0, 0, 4]

    def test_undeclared_names_are_ignored(self) -> None:
        assert row({"y": object()}).data == {"id": "1"}

    def test_volatile_columns_are_named_and_so_is_the_wording_of_a_time(self) -> None:
        found = row({"v": "¥1", "t": "2026"}, FieldSpec("v", Kind.PRICE, volatile=True), FieldSpec("t", Kind.MOMENT))
        assert found.volatile == {"v_amount", "v_currency", "t_text"}

    def test_a_key_of_several_fields_is_a_json_array(self) -> None:
        two = spec(FieldSpec("n", Kind.INT), key=("id", "n"))
        found = clean_record(two, {"id": 'a"', "n": "1"}, CONTEXT)
        assert isinstance(found, RecordRow)
        assert found.key == '["a\\"",1]'


class TestPages:
    def test_equal_records_fold_and_clashing_ones_are_errors(self) -> None:
        item = spec(FieldSpec("n", Kind.INT), FieldSpec("views", Kind.COUNT, volatile=True))
        raws = [("a", 1, 5), ("a", 1, 6), ("b", 1, 5), ("b", 2, 5), ("c", "x", 5), ("d", 1, 5)]
        rows, errors = clean_records([(item, {"id": i, "n": n, "views": v}) for i, n, v in raws], CONTEXT)
        assert [found.key for found in rows] == ["a", "d"]
        assert [(each.kind, each.value) for each in errors] == [("int_parsing", "x"), ("duplicate_key", "b")]
        assert "5" in errors[0].message

    def test_the_same_key_in_two_tables_is_two_records(self) -> None:
        other = replace(spec(), table="others")
        rows, errors = clean_records([(spec(), {"id": "1"}), (other, {"id": "1"})], CONTEXT)
        assert len(rows) == 2
        assert not errors


class TestFingerprint:
    def test_order_volatile_columns_and_nulls_do_not_count(self) -> None:
        one = RecordRow("t", "1", {"a": 1, "v": 2}, frozenset({"v"}))
        two = RecordRow("t", "2", {"a": 1})
        changed = replace(one, data={"v": 3, "new": None, "a": 1})
        assert content_hash([one, two]) == content_hash([two, changed])

    @pytest.mark.parametrize("other", [{"a": "1"}, {"a": 1.0}, {"a": True}, {"b": 1}, {"a": [1]}, {}])
    def test_types_and_names_count(self, other: dict[str, Json]) -> None:
        assert content_hash([RecordRow("t", "1", {"a": 1})]) != content_hash([RecordRow("t", "1", other)])

    def test_nothing_collides_by_being_joined(self) -> None:
        pairs = [("ab", "c"), ("a", "bc"), ("abc", ""), ("", "abc"), ('a","b', "c"), ("a", 'b","c')]
        hashes = {content_hash([RecordRow("t", "k", {"x": x, "y": y})]) for x, y in pairs}
        keys = {content_hash([RecordRow(x, y, {})]) for x, y in pairs}
        assert len(hashes) == len(keys) == len(pairs)

    def test_the_form_is_stable(self) -> None:
        # Stored hashes are compared with new ones: another form is a change of every page.
        stored = "cf4ff99eb7e7c9702ed8f284f60a53d83893ee86239ff354b00ff27500403ba3"
        assert content_hash([RecordRow("t", "1", {"b": "x", "a": 1})]) == stored


T = FieldSpec("t", Kind.MOMENT, optional=True)


def seen(text: str, after: timedelta = timedelta()) -> RecordRow:
    return row({"t": text}, T, context=replace(CONTEXT, now=NOW + after))


class TestMoments:
    @pytest.mark.parametrize(
        ("first", "then", "after"),
        [
            ("1 hour ago", "2 hours ago", timedelta(minutes=65)),
            ("1 hour ago", "2 hours ago", timedelta(minutes=1)),
            ("59分钟前", "1小时前", timedelta(minutes=30)),
            ("23小时前", "1天前", timedelta(hours=3)),
            ("3天前", "4天前", timedelta(hours=25)),
            ("6天前", "1周前", timedelta(days=2)),
            ("3周前", "1个月前", timedelta(days=10)),
            ("11个月前", "1年前", timedelta(days=40)),
            ("刚刚", "刚刚", timedelta(minutes=3)),
            ("刚刚", "2分钟前", timedelta(minutes=2)),
            ("今天 09:30", "昨天 09:30", timedelta(days=1)),
            ("2小时前", "今天", timedelta(hours=1)),
            ("2026-03-04 09:30", "2026年3月4日", timedelta(days=9)),
            ("2026-03-04", "Mar 4, 2026", timedelta(days=9)),
        ],
    )
    def test_another_wording_of_the_same_time_is_no_change(self, first: str, then: str, after: timedelta) -> None:
        old, new = seen(first), seen(then, after)
        settled = settle_moments(new, old.data, spec(T))
        assert content_hash([settled]) == content_hash([old])
        assert settled.data == old.data

    @pytest.mark.parametrize(
        ("first", "then", "after"),
        [
            ("5 hours ago", "1 hour ago", timedelta(hours=1)),
            ("3天前", "刚刚", timedelta()),
            ("刚刚", "刚刚", timedelta(hours=2)),
            ("2026-03-04", "2026-03-05", timedelta()),
            ("2026-03-04", "2026-03-04 09:30", timedelta()),
            ("2026-03-04 09:30", "2026-03-04 09:31", timedelta()),
            ("2026", "2026-01-01", timedelta()),
            ("昨天", "待定", timedelta()),
            ("待定", "昨天", timedelta()),
        ],
    )
    def test_another_time_or_a_better_known_one_is_a_change(self, first: str, then: str, after: timedelta) -> None:
        old, new = seen(first), seen(then, after)
        assert settle_moments(new, old.data, spec(T)) == new
        assert content_hash([new]) != content_hash([old])

    def test_a_new_record_has_nothing_to_keep(self) -> None:
        assert settle_moments(seen("昨天"), None, spec(T)) == seen("昨天")

    @given(st.integers(0, 60 * 24 * 400), st.lists(st.integers(1, 60 * 24 * 30), max_size=6))
    @settings(deadline=None)
    def test_a_page_that_only_grows_older_never_changes(self, age: int, waits: list[int]) -> None:
        posted = NOW - timedelta(minutes=age)
        now, stored = NOW, row({"t": _ago(NOW - posted)}, T)
        for wait in waits:
            now += timedelta(minutes=wait)
            fresh = row({"t": _ago(now - posted)}, T, context=replace(CONTEXT, now=now))
            settled = settle_moments(fresh, stored.data, spec(T))
            assert settled.data == stored.data


def _ago(age: timedelta) -> str:
    minutes = age // timedelta(minutes=1)
    for size, unit in ((60 * 24 * 7, "weeks"), (60 * 24, "days"), (60, "hours")):
        if minutes >= size:
            return f"{minutes // size} {unit} ago"
    return f"{minutes} minutes ago" if minutes else "just now"


EVERYTHING = tuple(
    FieldSpec(f"{kind.name.lower()}_{'many' if many else 'one'}", kind, optional=True, many=many)
    for kind in Kind
    for many in (False, True)
)
RAW = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=20)
    | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)


@given(st.lists(RAW, min_size=len(EVERYTHING), max_size=len(EVERYTHING)))
@settings(deadline=None)
def test_no_value_raises_and_every_row_can_be_stored(raws: list[object]) -> None:
    everything = spec(*EVERYTHING)
    for field, raw in zip(EVERYTHING, raws, strict=True):
        found = clean_record(spec(field), {"id": "1", field.name: raw}, CONTEXT)
        if isinstance(found, RecordRow):
            assert list(found.data) == ["id", *(name for name, _ in columns(field))]
            assert "\\u0000" not in orjson.dumps(found.data).decode()
            assert len(content_hash([found])) == 64
    assert clean_record(everything, dict(zip((f.name for f in EVERYTHING), raws, strict=True)), CONTEXT)


@given(
    st.text(st.characters(), max_size=30),
    st.sampled_from([Kind.STR, Kind.TEXT, Kind.DECIMAL, Kind.INT, Kind.FLOAT, Kind.COUNT]),
)
@settings(deadline=None)
def test_cleaning_what_is_clean_changes_nothing(text: str, kind: Kind) -> None:
    field = FieldSpec("x", kind)
    once = clean_record(spec(field), {"id": "1", "x": text}, CONTEXT)
    if isinstance(once, RecordRow) and "<" not in str(once.data["x"]) and "&" not in str(once.data["x"]):
        assert clean_record(spec(field), once.data, CONTEXT) == once
