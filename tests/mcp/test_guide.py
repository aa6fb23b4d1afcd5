"""The guide says what is so."""

from __future__ import annotations

import json
import re
from pathlib import Path

from apps.mcp.errors import KEPT_CODES
from apps.mcp.table import TOOLS
from apps.mcp.views import AGENTS_LINES

GUIDE = (Path(__file__).parents[2] / "docs" / "agents" / "mcp.md").read_text(encoding="utf-8")


def test_the_guide_names_every_tool_and_every_error() -> None:
    table = GUIDE.split("## The tools")[1].split("## How to read")[0]
    assert set(re.findall(r"`(cograph_\w+)`", table)) == {tool.name for tool in TOOLS}
    errors = GUIDE.split("## Errors")[1].split("## Resources")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", errors, re.MULTILINE)) == KEPT_CODES


def test_the_guide_shows_the_configuration_of_the_connect_page() -> None:
    blocks = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", GUIDE, re.DOTALL)]
    servers = [block["mcpServers"]["cograph"] for block in blocks]
    assert servers[0] == {
        "type": "http",
        "url": "https://HOST/mcp",
        "headers": {"Authorization": "Bearer ${COGRAPH_TOKEN}"},
    }
    assert servers[1]["args"] == ["manage.py", "mcp_stdio"]
    quoted = " ".join(line.strip().lstrip("> ") for line in GUIDE.splitlines() if line.strip().startswith(">"))
    assert quoted == AGENTS_LINES
