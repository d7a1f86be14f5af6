"""The service keeps what its OpenAPI document promises, whatever is sent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from recrawl.run.wire import the_clock
from recrawl.service.app import create_app
from recrawl.service.desk import Desk
from recrawl.service.intake import Intake
from tests.support.stores import fresh_store
from tests.test_service import LAMPS


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Any]:
    store = fresh_store(tmp_path / "recrawl.db")
    intake = Intake(store, the_clock().now, 50)
    desk = Desk(store, {"lamps": LAMPS}, intake, the_clock().now, open=True)
    yield schemathesis.openapi.from_asgi("/openapi.json", create_app(desk))
    intake.close()
    store.close()


CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
OPERATIONS = [
    "GET /healthz",
    "GET /readyz",
    "GET /v1/changes",
    "GET /v1/dead-letters",
    "GET /v1/dead-letters/{letter}",
    "GET /v1/pages",
    "GET /v1/sources",
    "GET /v1/tasks/{task}",
    "POST /v1/dead-letters/drop",
    "POST /v1/dead-letters/replay",
    "POST /v1/sources/{source}/records",
]


def operations(api: Any) -> dict[str, Any]:
    return {found.ok().label: found.ok() for found in api.get_all_operations()}


def test_every_operation_is_known_here(api: Any) -> None:
    assert sorted(operations(api)) == OPERATIONS


WITHOUT_INPUT = ("GET /healthz", "GET /readyz", "GET /v1/sources")
MODES = [
    (operation, mode)
    for operation in OPERATIONS
    for mode in GenerationMode
    if mode is GenerationMode.POSITIVE or operation not in WITHOUT_INPUT
]


@pytest.mark.parametrize(("operation", "mode"), MODES)
def test_every_answer_is_one_that_is_documented(api: Any, operation: str, mode: GenerationMode) -> None:
    strategy = operations(api)[operation].as_strategy(generation_mode=mode)

    @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
    @given(case=strategy, known=st.booleans())
    def holds(case: schemathesis.Case[Any], known: bool) -> None:
        if known and "source" in case.path_parameters:
            case.path_parameters["source"] = "lamps"
        case.call_and_validate(checks=CHECKS)

    holds()
