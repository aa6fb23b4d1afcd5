from __future__ import annotations

import io
import logging
import logging.config

import pytest

from apps.access.origin import Origin, acting
from cograph_site import logs


@pytest.fixture
def lines() -> io.StringIO:
    """What the handler of the configuration writes."""
    configuration = logs.configuration("info")
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    line = configuration["formatters"]["line"]
    handler.setFormatter(logs.RedactingFormatter(line["format"], style=line["style"]))
    handler.addFilter(logs.RequestId())
    logger = logging.getLogger("tests.logs")
    logger.propagate = False
    logger.setLevel("INFO")
    logger.handlers = [handler]
    return stream


def test_a_line_carries_the_request_it_belongs_to(lines: io.StringIO) -> None:
    logging.getLogger("tests.logs").info("outside")
    with acting(Origin(how="session", request_id="abc123")):
        logging.getLogger("tests.logs").info("inside")
    outside, inside = lines.getvalue().splitlines()
    assert "[-] outside" in outside
    assert "[abc123] inside" in inside


def test_no_secret_reaches_a_line_not_even_by_a_traceback(lines: io.StringIO) -> None:
    logger = logging.getLogger("tests.logs")
    logger.info("fetching %s", "https://user:tok3n@git.example/x.git")
    try:
        raise ValueError("Authorization: Bearer tok3ntok3n")
    except ValueError:
        logger.exception("refused")
    assert "tok3n" not in lines.getvalue()
    assert "git.example" in lines.getvalue()


def test_the_configuration_is_one_that_logging_takes() -> None:
    for level in ("debug", "info", "warning", "error"):
        assert logging.config.DictConfigurator(logs.configuration(level))


def test_a_call_of_an_agent_leaves_no_lines_of_the_sdk() -> None:
    sdk = logging.getLogger("mcp.server.streamable_http_manager")
    assert not sdk.isEnabledFor(logging.INFO)
    assert sdk.isEnabledFor(logging.WARNING)
