"""Which addresses the server may call (facts 33 and 34, rule 27). Names are resolved by a resolver of the test's own;
connections, where one is made, go to a real server."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from apps.access.addresses import Unresolvable, check_address, is_public_address
from apps.access.errors import Invalid
from apps.access.outbound import checked_client

PUBLIC = "93.184.215.14"


def names(**table: list[str]) -> Any:
    def resolver(host: str, port: int) -> list[str]:
        if host.replace("-", "_").replace(".", "_") in table:
            return table[host.replace("-", "_").replace(".", "_")]
        raise OSError

    return resolver


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1",
        "127.8.9.1",
        "0.0.0.0",
        "10.0.0.1",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "100.64.0.1",
        "169.254.169.254",
        "192.0.0.192",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:10.0.0.1",
        "::ffff:93.184.215.14",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "2001:0:7f00:1::",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "2001:db8::1",
        "no address",
    ],
)
def test_addresses_that_are_not_public(text: str) -> None:
    assert not is_public_address(text)


@pytest.mark.parametrize("text", [PUBLIC, "1.1.1.1", "2606:4700:4700::1111"])
def test_addresses_that_are_public(text: str) -> None:
    assert is_public_address(text)


@pytest.mark.parametrize(
    "address",
    [
        "https://127.0.0.1/x.git",
        "https://[::ffff:10.0.0.1]/x.git",
        "https://[::1]:8443/x.git",
        "https://localhost/x.git",
        "https://localhost./x.git",
        "https://2130706433/x.git",
        "https://0x7f.1/x.git",
        "https://127.1/x.git",
        "https://0/x.git",
    ],
)
def test_access_fact_33_private_hosts_are_refused_by_the_name_as_typed(address: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_address(address, field="git_url")
    assert refused.value.field == "git_url"
    assert "10.0.0.1" not in refused.value.message or "10.0.0.1" in address


def test_access_fact_33_every_resolved_address_counts() -> None:
    mixed = names(two_example=[PUBLIC, "10.0.0.7"])
    with pytest.raises(Invalid) as refused:
        check_address("https://two.example/x.git", field="git_url", resolver=mixed)
    assert "two.example" in refused.value.message
    assert "10.0.0.7" not in refused.value.message


def test_access_fact_33_what_was_checked_is_what_is_connected_to() -> None:
    """A name that is public the first time and private the second: the client looks once for each connection."""
    answers = iter([[PUBLIC], ["127.0.0.1"]])
    asked = []

    def rebinding(host: str, port: int) -> list[str]:
        asked.append(host)
        return next(answers)

    checked = check_address("https://rebind.example/x.git", resolver=rebinding)
    assert checked.ips == (PUBLIC,)
    with checked_client(resolver=rebinding) as client, pytest.raises(Invalid):
        client.get("https://rebind.example/x.git")
    assert len(asked) == 2


@pytest.mark.parametrize(
    "address",
    [
        "--upload-pack=x",
        "-x",
        "file:///etc",
        "ext::sh -c id",
        "git@host:a/b",
        "ssh://git@example.org/a/b",
        "git://example.org/a",
        "ftp://example.org/a",
        "https://",
        "https:///x",
        "https://exa mple.org/",
        "https://example.org\\@evil.example/",
        "https://example.org/\nx",
        "https://example.org/\0",
        "https://example.org:99999/",
        "https://[::1/",
        "https://-x.example/",
        "",
    ],
)
def test_access_fact_34_what_is_no_address_names_the_field(address: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_address(address, field="git_url", resolver=names(example_org=[PUBLIC]))
    assert (refused.value.status, refused.value.field) == (422, "git_url")


def test_user_and_password_belong_into_a_credential() -> None:
    for address in ("https://me:tok3n@example.org/a", "https://tok3n@example.org/a"):
        with pytest.raises(Invalid) as refused:
            check_address(address, resolver=names(example_org=[PUBLIC]))
        assert "credential" in refused.value.message
        assert "tok3n" not in refused.value.message


def test_parts_of_a_good_address() -> None:
    checked = check_address("https://Example.ORG:8443/a.git", resolver=names(example_org=[PUBLIC, "1.1.1.1", PUBLIC]))
    assert (checked.scheme, checked.host, checked.port) == ("https", "example.org", 8443)
    assert checked.ips == (PUBLIC, "1.1.1.1")
    ssh = check_address("ssh://git@example.org/a", schemes=("ssh",), resolver=names(example_org=[PUBLIC]))
    assert (ssh.scheme, ssh.port) == ("ssh", 22)


def test_a_name_without_address_may_have_one_later() -> None:
    with pytest.raises(Unresolvable):
        check_address("https://nowhere.example/", resolver=names())


def test_listed_hosts_may_be_private_and_plain(configure: Any) -> None:
    resolver = names(git_local=["10.0.0.7"], example_org=[PUBLIC])
    with pytest.raises(Invalid):
        check_address("http://example.org/", schemes=("http", "https"), resolver=resolver)
    configure(allowed_private_hosts=("Git.Local",))
    assert check_address("http://git.local/", schemes=("http", "https"), resolver=resolver).ips == ("10.0.0.7",)
    with pytest.raises(Invalid):
        check_address("http://example.org/", schemes=("http", "https"), resolver=resolver)


@pytest.fixture
def server() -> Iterator[int]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/away":
                self.send_response(302)
                self.send_header("Location", "http://127.0.0.1/secret")
                self.end_headers()
                return
            self.send_response(200)
            self.end_headers()
            self.wfile.write((self.headers["Host"] or "").encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever)
    thread.start()
    yield running.server_address[1]
    running.shutdown()
    thread.join()
    running.server_close()


def test_the_client_connects_to_the_checked_address_and_keeps_the_name(server: int, configure: Any) -> None:
    resolver = names(embed_local=["127.0.0.1"])
    with checked_client(resolver=resolver) as client:
        with pytest.raises(Invalid):
            client.get(f"http://embed.local:{server}/")
        with pytest.raises(Invalid):
            client.get(f"http://127.0.0.1:{server}/")
        configure(allowed_private_hosts=("embed.local",))
        assert client.get(f"http://embed.local:{server}/").text == f"embed.local:{server}"
        away = client.get(f"http://embed.local:{server}/away")
        assert away.status_code == 302


def test_redirects_are_checked_again_where_they_are_followed(server: int, configure: Any) -> None:
    configure(allowed_private_hosts=("embed.local",))
    with checked_client(resolver=names(embed_local=["127.0.0.1"])) as client, pytest.raises(Invalid):
        client.get(f"http://embed.local:{server}/away", follow_redirects=True)


def test_a_closed_port_is_a_connection_error(configure: Any) -> None:
    configure(allowed_private_hosts=("embed.local",))
    with checked_client(resolver=names(embed_local=["127.0.0.1"])) as client, pytest.raises(httpx.ConnectError):
        client.get("http://embed.local:9/")
