"""Secrets leave the text before anything is stored."""

from __future__ import annotations

import time

import pytest

from apps.repos.discovery import Kind
from apps.repos.redaction import redact_file


def redact(text: str, path: str = "deploy/app.yaml", kind: Kind = Kind.CONFIG) -> str:
    found = redact_file(text, path, kind)
    assert found.text.count("\n") == text.count("\n"), "lines keep their numbers"
    return found.text


def test_repos_fact_21_env_values() -> None:
    text = redact("API_KEY=abc123def\nPORT=8000\nDEBUG=true\n", ".env")
    assert text == "API_KEY=[redacted]\nPORT=8000\nDEBUG=true\n"


@pytest.mark.parametrize(
    "line",
    [
        "A=",
        "A=true",
        "A=12345",
        "A=${X}",
        "A=$X",
        "A=changeme",
        "A=xxx",
        "A=<your key>",
        "A=your-token-here",
        "# prose: x",
    ],
)
def test_repos_rule_4_2a_env_keeps(line: str) -> None:
    assert redact(line, ".env.local") == line


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("A=123456", "A=[redacted]"),
        ("export A='s e c' # why", "export A=[redacted]"),
        ("#A=hunter2", "#A=[redacted]"),
        ("URL=http://h/x", "URL=[redacted]"),
    ],
)
def test_repos_rule_4_2a_env_redacts(line: str, kept: str) -> None:
    assert redact(line, "sub/.env") == kept


def test_repos_rule_4_2a_value_over_several_lines() -> None:
    text = redact('KEY="first\nsecond secret\nthird"\nPORT=1\n', ".env")
    assert "secret" not in text
    assert text.endswith("PORT=1\n")


def test_repos_fact_22_env_example() -> None:
    text = redact("LOG_LEVEL=info\nDB_PASSWORD=changeme\nDB_PASSWORD=hunter22x\n", ".env.example")
    assert text == "LOG_LEVEL=info\nDB_PASSWORD=changeme\nDB_PASSWORD=[redacted]\n"


def test_repos_rule_4_2a_example_by_value() -> None:
    assert redact("URL=postgres://u:pw123456@h/d", ".env.sample") == "URL=[redacted]"
    assert redact("HASH=Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5", ".env.dist") == "HASH=[redacted]"
    assert redact("NAME=aaaaaaaaaaaaaaaaaaaaaaaa", ".env.dist") == "NAME=aaaaaaaaaaaaaaaaaaaaaaaa"


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("password: hunter22xyz", "password: [redacted]"),
        ("  dbPassword: 'hunter22xyz'", "  dbPassword: '[redacted]'"),
        ('api_key = "abcdefgh1"', 'api_key = "[redacted]"'),
        ('{"clientSecret": "aaaabbbbcccc", "x": 1}', '{"clientSecret": "[redacted]", "x": 1}'),
        ("token: ${{ secrets.X }}", "token: ${{ secrets.X }}"),
        ("token: short", "token: short"),
        ("password: two words here", "password: two words here"),
        ("tokenizer: something-long", "tokenizer: something-long"),
        ("key: a-cache-key-name", "key: a-cache-key-name"),
        ("url: https://bob:pa55word@host/x", "url: https://bob:[redacted]@host/x"),
        ("ENV DB_PASSWORD=abcdefgh12", "ENV DB_PASSWORD=[redacted]"),
    ],
)
def test_repos_rule_4_2b_config_and_workflow(line: str, kept: str) -> None:
    assert redact(line) == kept
    if line.startswith("ENV"):
        return
    assert redact(line, ".github/workflows/a.yml", Kind.WORKFLOW) == kept


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a:\n token: |\n  hunter22xyz\n  x\n b: a-word-x", "a:\n token: |\n  [redacted]\n  x\n b: a-word-x"),
        ("token: >-\n  hunter22xyz\n\nnext: 1", "token: >-\n  [redacted]\n\nnext: 1"),
        ("token:\n  hunter22xyz\nnext: 1", "token:\n  [redacted]\nnext: 1"),
        ('api_key = """\nhunter22xyz\n"""\nb = 1', 'api_key = """\n[redacted]\n"""\nb = 1'),
        ('{"x": {"npmToken":\n"hunter22xyz"}}', '{"x": {"npmToken":\n"[redacted]"}}'),
        ("secrets:\n  - database_password", "secrets:\n  - database_password"),
        ("secrets:\n  database_password:\n    file: x", "secrets:\n  database_password:\n    file: x"),
        ("password:\nusernames", "password:\nusernames"),
        ("token: |\n  ${DEPLOY_TOKEN}", "token: |\n  ${DEPLOY_TOKEN}"),
        ('password = """\nnever closed here\nhunter22xyz', 'password = """\nnever closed here\nhunter22xyz'),
    ],
)  # fmt: skip
def test_repos_rule_4_2b_values_below_their_key(text: str, kept: str) -> None:
    assert redact(text) == kept


def test_repos_rule_4_2b_prose_is_left_alone() -> None:
    assert redact("password: hunter22xyz", "docs/a.md", Kind.REPO_DOC) == "password: hunter22xyz"


@pytest.mark.parametrize(
    "secret",
    [
        "AKIA" + "A1B2" * 4,
        "ghp_" + "a1B2" * 9,
        "github_pat_" + "a1B2" * 8,
        "glpat-" + "a1B2" * 6,
        "xoxb-" + "1234567890-abcdef",
        "sk-ant-" + "api03-" + "a1" * 12,
        "sk-proj-" + "a1B2" * 8,
        "hf_" + "a1B2" * 9,
        "AIza" + "a1B2c" * 7,
        "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0In0." + "c2lnbmF0dXJl",
    ],
)
def test_repos_rule_4_2c_tokens_in_every_kind(secret: str) -> None:
    text = redact(f"Call it with `{secret}` please.\n", "README.md", Kind.REPO_DOC)
    assert text == "Call it with `[redacted]` please.\n"


def test_repos_rule_4_2c_private_keys() -> None:
    body = "\n".join(["MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"] * 3)
    text = f"# Keys\n\n-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----\nafter\n"
    kept = redact(text, "README.md", Kind.REPO_DOC)
    assert "MIIE" not in kept
    assert kept.startswith("# Keys\n\n-----BEGIN RSA PRIVATE KEY-----\n[redacted]")
    assert kept.endswith("-----END RSA PRIVATE KEY-----\nafter\n")


def test_repos_rule_4_2c_key_block_that_never_ends_keeps_the_prose() -> None:
    text = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADAN\n\nThis is *prose*, and it goes on!\n"
    kept = redact(text, "README.md", Kind.REPO_DOC)
    assert "MIIE" not in kept
    assert "This is *prose*" in kept


def test_repos_rule_4_2_reports_lines() -> None:
    found = redact_file("a: 1\npassword: hunter22xyz\n", "deploy/x.yaml", Kind.CONFIG)
    assert (found.count, found.lines) == (1, (2,))


def test_repos_rule_4_2_is_linear() -> None:
    def cost(size: int) -> float:
        started = time.process_time()
        redact_file("token: " + "x-" * 50_000 * size + "\n", "deploy/x.yaml", Kind.CONFIG)
        redact_file("password" * 12_500 * size + "\n", "deploy/x.yaml", Kind.CONFIG)
        redact_file("a-" * 50_000 * size + "token:\n", "deploy/x.yaml", Kind.CONFIG)
        redact_file("token: |\n a\n" * 5_000 * size, "deploy/x.yaml", Kind.CONFIG)
        redact_file("eyJ" + "a" * 100_000 * size + "\n", "README.md", Kind.REPO_DOC)
        redact_file("\n".join(["-----BEGIN PRIVATE KEY-----"] * 1250 * size), "README.md", Kind.REPO_DOC)
        return time.process_time() - started

    # Four times the text costs sixteen times as much where it is quadratic.
    assert cost(4) < 8 * max(cost(1), 0.05)
