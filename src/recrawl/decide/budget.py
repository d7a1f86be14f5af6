"""How many requests a budget still allows. An hour is one of the clock, a day is one of UTC."""

from __future__ import annotations

from dataclasses import dataclass

from recrawl.declare import Budget

HOUR, DAY = 3600, 86_400
_BLOCK = 20


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `most` requests in every `span` seconds."""

    span: int
    most: int

    def began(self, seconds: float) -> float:
        """When the present hour or day began, both in seconds since 1970."""
        return seconds - seconds % self.span

    def ends(self, seconds: float) -> float:
        return self.began(seconds) + self.span


def of_source(budget: Budget) -> tuple[Limit, ...]:
    """What limits the requests of a source."""
    return _limits(budget.per_hour, budget.per_day)


def of_host(budget: Budget) -> tuple[Limit, ...]:
    """What limits the requests to each host of a source."""
    return _limits(budget.host_per_hour, budget.host_per_day)


def _limits(hour: int | None, day: int | None) -> tuple[Limit, ...]:
    return tuple(Limit(span, most) for span, most in ((HOUR, hour), (DAY, day)) if most is not None)


def block(limits: tuple[Limit, ...]) -> int:
    """How many requests a worker takes out of a budget at once. What it does not make of them is lost to the others, so
    it is a hundredth at most."""
    return max(1, min(_BLOCK, min(limit.most for limit in limits) // 100))
