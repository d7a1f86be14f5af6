"""Who holds a lease: a name that tells other processes of this machine whether its process still lives."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from functools import cache
from pathlib import Path


@cache
def _machine() -> str:
    """This boot of this machine, and the process namespace within it: only there do process numbers mean anything."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        space = Path("/proc/self/ns/pid").readlink().name
    except OSError:
        return f"{socket.gethostname()}/-"
    return f"{socket.gethostname()}/{boot}{space}"


def _started(pid: int) -> str | None:
    """When a process began, in clock ticks since boot; None if there is none of that number, or it is a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]


def own_name() -> str:
    """The name of this process as a worker."""
    pid = os.getpid()
    return f"{_machine()}/{pid}/{_started(pid) or '-'}"


def dead(owners: Iterable[str]) -> list[str]:
    """Those that are known to be dead: workers of this machine whose process is no more. Of others nothing is known."""
    gone = []
    for owner in owners:
        machine, pid, started = owner.rsplit("/", 2) if owner.count("/") >= 2 else ("", "", "-")
        if machine == _machine() and started != "-" and pid.isdigit() and _started(int(pid)) != started:
            gone.append(owner)
    return gone
