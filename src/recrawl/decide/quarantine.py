"""Is this the page, or something that came in its place? Signals in, a verdict with named reasons out.

No single sign decides, but the bot check of a known maker, a mass redirect and an application without content. What a
page says, how little it says, and how far it is from the good pages of its source and from its own last good look are
weighed together; a page that is built like the good ones is believed more. Where only that distance, or the way to it,
speaks against a page, and nothing on it, it is held back for two looks and believed at the third: a page may change
that much.
"""

from __future__ import annotations

from dataclasses import dataclass

from recrawl.decide.phrases import Trouble, in_heading, in_text
from recrawl.decide.profile import Profile
from recrawl.model.signals import Signals

_LIMIT = 1.0
_HELD = 2  # looks for which a page is held back that only looks other than before
_SHORT, _TINY = 800, 200
MANY = 3
"""Pages that may lead to the same address: the next one is one of many, and not believed."""
_PRIORITY = ("bot check", *Trouble, "mass redirect")


@dataclass(frozen=True, slots=True)
class Sign:
    """One reason for or against a page. `relative`: it speaks of a difference only, and not of trouble."""

    name: str
    weight: float
    told: str
    relative: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What a page is compared with. `own` is its last good look, where there is one; `values` and `own_values` count
    the values that were read from each, but for addresses, `unseen` those of them that nobody sees on the page."""

    profile: Profile
    own: Signals | None = None
    values: int = 0
    unseen: int = 0
    own_values: int = 0
    failures: int = 0  # looks in a row that ended without data
    redirected: bool = False  # it came from another address
    at_home: bool = False  # its last good look came from its own
    sent_along: int = 0  # other pages that ended at the same address
    twins: int = 0  # other pages that show the same short text
    template: bool = False  # the source's pages are being built anew


@dataclass(frozen=True, slots=True)
class Finding:
    """`name` says what the page is taken for; `signs` are all reasons, the heaviest first."""

    name: str
    signs: tuple[Sign, ...]

    @property
    def reason(self) -> str:
        return f"{self.name}: " + "; ".join(sign.told for sign in self.signs if sign.weight > 0)


def suspicious(page: Signals, known: Known) -> bool:
    """Whether a page gives any cause to look at it closely: cheap, and asked of every page."""
    profile = known.profile
    return bool(
        page.challenge
        or page.shell
        or (page.password and not profile.passwords_usual)
        or known.redirected
        or known.twins
        or page.letters < profile.smallest // 2
        or profile.built_alike(page.structure) is False
        or any(in_heading(heading) for heading in page.headings)
        or in_text(page.opening)
        or not known.values
    )


def judge(page: Signals, known: Known) -> Finding | None:
    """What a page is taken for if it is not the page; None if it is to be believed."""
    signs = [*_of_words(page, known), *_of_forms(page, known), *_of_ways(known), *_of_distance(page, known)]
    against = sorted((sign for sign in signs if sign.weight > 0), key=lambda sign: -sign.weight)
    if sum(sign.weight for sign in signs) < _LIMIT - 1e-9 or not against:
        return None
    if all(sign.relative for sign in against) and known.failures >= _HELD:
        return None
    named = next((name for name in _PRIORITY if any(sign.name == name for sign in against)), "another page")
    return Finding(named, tuple(sorted(signs, key=lambda sign: -sign.weight)))


def _of_words(page: Signals, known: Known) -> list[Sign]:
    """What it says. Of each kind of trouble the strongest word counts, of all kinds together the strongest kind."""
    found: dict[Trouble, Sign] = {}
    for heading in page.headings:
        for kind, share in in_heading(heading).items():
            _keep(found, Sign(kind, 0.7 if share >= 0.5 else 0.4, f"headed {heading!r}", relative=False))
    for kind, words in in_text(page.opening).items():
        if kind is Trouble.SHELL:
            continue  # a word to browsers without scripts; whether there is nothing else is judged below
        _keep(found, Sign(kind, 0.6 if page.letters < 400 else 0.4, f"it says {words!r}", relative=False))
    said_before = _spoken(known.own)
    signs = [s for kind, s in found.items() if kind not in said_before and not known.profile.usual(kind)]
    if not signs:
        return []
    strongest = max(signs, key=lambda sign: sign.weight)
    if page.letters < _SHORT:
        tiny = page.letters < _TINY
        return [strongest, Sign("short", 0.5 if tiny else 0.4, f"{page.letters} letters in all", relative=False)]
    return [strongest]


def _keep(found: dict[Trouble, Sign], sign: Sign) -> None:
    kind = Trouble(sign.name)
    if kind not in found or found[kind].weight < sign.weight:
        found[kind] = sign


def _spoken(own: Signals | None) -> set[Trouble]:
    """The kinds of trouble that the page spoke of when it was good."""
    if own is None:
        return set()
    return {kind for heading in own.headings for kind in in_heading(heading)} | set(in_text(own.opening))


def _of_forms(page: Signals, known: Known) -> list[Sign]:
    signs: list[Sign] = []
    own, profile = known.own, known.profile
    if page.challenge and not (own and own.challenge):
        signs.append(Sign("bot check", 1.0, f"{page.challenge} asks for a proof", relative=False))
    if page.password and not (own.password if own else profile.passwords_usual):
        new = own is not None or profile.knows
        told = "a field for a password where there was none" if new else "a field for a password"
        signs.append(Sign(Trouble.LOGIN, 0.5 if new else 0.2, told, relative=False))
    empty = page.letters < 50 and page.scripts > 0 and known.unseen <= 1
    if empty and not (own and own.letters < 50):
        if page.shell or Trouble.SHELL in in_text(page.opening):
            signs.append(Sign(Trouble.SHELL, 1.0, "scripts, and nothing to read", relative=False))
        else:
            signs.append(Sign("empty", 0.5, "scripts, and nothing to read"))
    return signs


def _of_ways(known: Known) -> list[Sign]:
    signs: list[Sign] = []
    if known.sent_along >= MANY:
        told = f"{known.sent_along} or more other pages lead to the same address"
        signs.append(Sign("mass redirect", 1.5, told, relative=False))
    elif known.redirected:
        weight = 1.5 if known.at_home else 0.2
        signs.append(Sign("redirected", weight, "it came from another address"))
    if known.twins:
        told = f"{known.twins} other pages show the same text"
        signs.append(Sign("same text", 0.5 if known.twins > 1 else 0.3, told))
    return signs


def _of_distance(page: Signals, known: Known) -> list[Sign]:
    """How far it is from the source's good pages, and from its own last good look."""
    signs: list[Sign] = []
    own, profile = known.own, known.profile
    alike = profile.built_alike(page.structure)
    if alike or (own and own.structure and own.structure == page.structure):
        signs.append(Sign("built alike", -0.5, "it is built like good pages"))
    elif alike is False and not known.template:
        signs.append(Sign("foreign structure", 0.4, "it is built like no good page of the source"))
    if own and own.letters >= _TINY and page.letters < own.letters * 0.1:
        signs.append(Sign("collapsed", 0.6, f"{page.letters} letters, where there were {own.letters}"))
    elif own and own.letters >= _TINY and page.letters < own.letters * 0.25:
        signs.append(Sign("collapsed", 0.4, f"{page.letters} letters, where there were {own.letters}"))
    elif not alike and page.letters < profile.smallest // 2:
        signs.append(Sign("small", 0.3, f"{page.letters} letters, where {profile.smallest} and more are usual"))
    if known.own_values > 1 and known.values < known.own_values / 2:
        signs.append(Sign("lost values", 0.3, f"{known.values} values, where there were {known.own_values}"))
    return signs
