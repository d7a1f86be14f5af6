"""What came in place of a page does not become a version of it; and what only looks like that does."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from recrawl.decide.phrases import Trouble
from recrawl.decide.profile import ENOUGH, Profile
from recrawl.decide.quarantine import Finding, Known, judge, suspicious
from recrawl.extract.document import Document
from recrawl.extract.signals import signals_of
from recrawl.extract.structure import html_shape
from recrawl.model.fetched import Page
from recrawl.model.signals import Signals
from tests.support.lookalikes import FILLER, IS_THE_PAGE, LOGIN, NOT_THE_PAGE, SHELL, article, bare

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def signals(body: str, content_type: str = "text/html; charset=utf-8") -> Signals:
    document = Document(Page("https://site.example/a", "https://site.example/a", body.encode(), content_type, NOW))
    return signals_of(document, html_shape(document.root) if "html" in content_type else None)


def a_profile(pages: int = 2 * ENOUGH) -> Profile:
    """What is known after that many articles of different lengths."""
    profile = Profile()
    for number in range(pages):
        profile.learn(signals(article(f"News {number}", FILLER * (2 + number % 9))))
    return profile


def found(body: str, known: Known, content_type: str = "text/html; charset=utf-8") -> Finding | None:
    page = signals(body, content_type)
    return judge(page, known) if suspicious(page, known) else None


FIRST_LOOK = Known(profile=Profile(), values=2)
KNOWN_SOURCE = Known(profile=a_profile(), values=2)
KNOWN_PAGE = Known(profile=a_profile(), own=signals(article("Lamp", FILLER * 6)), values=2, own_values=3)


@pytest.mark.parametrize("name", NOT_THE_PAGE)
@pytest.mark.parametrize(
    "known", [FIRST_LOOK, KNOWN_SOURCE, KNOWN_PAGE], ids=["first look", "known source", "known page"]
)
def test_what_came_in_place_of_a_page_is_known_for_it(name: str, known: Known) -> None:
    assert found(NOT_THE_PAGE[name], known) is not None


@pytest.mark.parametrize("name", IS_THE_PAGE)
@pytest.mark.parametrize("known", [FIRST_LOOK, KNOWN_SOURCE], ids=["first look", "known source"])
def test_a_page_that_only_speaks_of_such_things_is_believed(name: str, known: Known) -> None:
    assert found(IS_THE_PAGE[name], known) is None


@pytest.mark.parametrize(
    ("name", "taken_for"),
    [
        ("cloudflare", "bot check"),
        ("akamai", Trouble.BLOCKED),
        ("安全验证", Trouble.CAPTCHA),
        ("login", Trouble.LOGIN),
        ("页面不存在", Trouble.MISSING),
        ("shell", Trouble.SHELL),
    ],
)
def test_the_reason_names_what_it_is_taken_for(name: str, taken_for: str) -> None:
    finding = found(NOT_THE_PAGE[name], FIRST_LOOK)
    assert finding is not None
    assert finding.name == taken_for
    assert finding.reason.startswith(f"{taken_for}: ")


def test_a_short_brief_about_an_error_is_believed_where_pages_are_built_like_it() -> None:
    brief = article("404 not found", "An exhibition of lost pages.")
    assert found(brief, FIRST_LOOK) is not None, "nothing is known that would speak for it"
    assert found(brief, KNOWN_SOURCE) is None


def test_a_page_that_always_spoke_of_it_is_believed() -> None:
    own = signals(bare("Page not found", "A record label."))
    assert (
        found(bare("Page not found", "A record label from Leeds."), Known(profile=Profile(), own=own, values=2)) is None
    )


def test_an_unknown_notice_is_held_back_for_two_looks_and_then_believed() -> None:
    notice = "<html><body><center><b>Fermé pour travaux</b></center></body></html>"
    known = Known(profile=a_profile(), own=signals(article("Lamp", FILLER * 6)), values=1, own_values=3)
    for failures, held in ((0, True), (1, True), (2, False)):
        again = Known(profile=known.profile, own=known.own, values=1, own_values=3, failures=failures)
        assert (found(notice, again) is not None) is held


def test_trouble_that_a_page_speaks_of_is_not_believed_at_the_third_look_either() -> None:
    for failures in range(5):
        assert found(NOT_THE_PAGE["安全验证"], Known(profile=Profile(), values=2, failures=failures)) is not None


def test_a_redesign_is_believed() -> None:
    anew = f"<html><body><div id=page><section><h2>Lamp</h2><div>{FILLER * 5}</div></section></div></body></html>"
    known = Known(profile=a_profile(), own=signals(article("Lamp", FILLER * 6)), values=3, own_values=3)
    assert found(anew, known) is None


def test_a_login_field_on_every_page_is_no_login_wall() -> None:
    form = "<form><input type=password name=p></form>"
    profile = Profile()
    for number in range(ENOUGH):
        profile.learn(signals(article(f"News {number}", FILLER, extra=form)))
    assert not suspicious(signals(article("News", FILLER, extra=form)), Known(profile=profile, values=2))


def test_a_new_login_field_beside_the_same_text_is_no_login_wall() -> None:
    known = Known(profile=a_profile(), own=signals(article("Lamp", FILLER * 6)), values=3, own_values=3)
    assert found(article("Lamp", FILLER * 6, extra="<form><input type=password></form>"), known) is None
    assert found(LOGIN, known) is not None


def test_a_source_whose_pages_are_applications_is_believed_where_values_are_read_from_them() -> None:
    assert found(SHELL, Known(profile=Profile(), values=5, unseen=5)) is None


def test_the_same_notice_is_known_again_under_another_number() -> None:
    one, two = (signals(bare("Notice", f"Incident {ray} at 10.0.0.{ray[0]}")) for ray in ("8e2f0d91", "1c0ffee2"))
    assert one.print == two.print
    assert one.print != signals(bare("Notice", "Another text")).print


def test_plain_text_and_json_are_judged_too() -> None:
    text = "<title>404 Not Found</title><h1>Page not found</h1>"
    assert found(text, FIRST_LOOK, "text/plain; charset=utf-8") is not None
    assert found("A", FIRST_LOOK, "text/plain; charset=utf-8") is None
    assert found('{"code": 404, "message": "page not found"}', FIRST_LOOK, "application/json") is not None
    assert found('{"title": "Page not found", "text": "A song."}', FIRST_LOOK, "application/json") is None


def test_what_workers_learn_apart_adds_up() -> None:
    whole, one, two = a_profile(40), Profile(), Profile()
    for number in range(40):
        (one if number % 2 else two).learn(signals(article(f"News {number}", FILLER * (2 + number % 9))))
    one.add(Profile.from_json(two.as_json()))
    assert one == whole
