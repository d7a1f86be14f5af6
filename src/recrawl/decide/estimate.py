"""What a sample says of the whole."""

from __future__ import annotations

from math import sqrt

Z = 1.959964  # of 95 % confidence


def wilson(hits: int, looks: int) -> tuple[float, float]:
    """Bounds of the share of hits in the whole, at 95 % confidence (Wilson's score interval).

    Unlike the usual approximation it stays right for small samples and for shares near 0 and 1. Of no looks nothing is
    known: 0 to 1.
    """
    if looks == 0:
        return 0.0, 1.0
    share, square = hits / looks, Z * Z
    middle = share + square / (2 * looks)
    reach = Z * sqrt(share * (1 - share) / looks + square / (4 * looks * looks))
    scale = 1 + square / looks
    return max(0.0, (middle - reach) / scale), min(1.0, (middle + reach) / scale)
