"""Which addresses the server may call: every resolved address is checked, and the checked one is connected to.

SECURITY: without this, a repository or an embedder address is a way to reach metadata services and machines behind
the firewall (SSRF), also by names that answer differently the second time (DNS rebinding).
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import urlsplit

from django.conf import settings

from apps.access.errors import Invalid

IPAddress: TypeAlias = "ipaddress.IPv4Address | ipaddress.IPv6Address"
Resolver: TypeAlias = Callable[[str, int], Sequence[str]]

DEFAULT_PORTS = {"https": 443, "http": 80, "ssh": 22}

# Networks that wrap an IPv4 address (mapped, NAT64, 6to4, Teredo), so that the one checked is not the one reached.
_WRAPPERS = tuple(
    ipaddress.ip_network(text)
    for text in ("::ffff:0:0/96", "::/96", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32")
)
# Special networks that the standard library takes for global: protocol assignments (a metadata service stands there)
# and the site-local addresses of old.
_SPECIAL = tuple(ipaddress.ip_network(text) for text in ("192.0.0.0/24", "192.88.99.0/24", "fec0::/10"))
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?\.?")


@dataclass(frozen=True, slots=True)
class CheckedAddress:
    """An address that may be connected to: ``host`` as typed (lower case), ``ips`` all checked, to be pinned."""

    scheme: str
    host: str
    port: int
    ips: tuple[str, ...]


class Unresolvable(Invalid):
    """The name has no address at the moment; a later attempt may find one."""


def resolve(host: str, port: int) -> Sequence[str]:
    """Every address of a name, by the system's resolver. Raises OSError."""
    return [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def check_address(
    address: str,
    *,
    schemes: Sequence[str] = ("https",),
    field: str | None = None,
    resolver: Resolver = resolve,
) -> CheckedAddress:
    """The parts of a URL (or of a bare host, taken as https) with the addresses that may be connected to.

    ``schemes`` are those that the caller can speak. http, and private ranges, are only for hosts that the operator
    lists in ``COGRAPH_ALLOWED_PRIVATE_HOSTS``. Raises Invalid with ``field``; the text names the host as typed and
    never what was found there.
    """
    scheme, host, port = _split(address, schemes, field)
    listed = is_listed(host)
    if scheme == "http" and not listed:
        raise Invalid(
            f"http is not used for {host}: only https, or hosts that the operator lists in "
            "COGRAPH_ALLOWED_PRIVATE_HOSTS.",
            field=field,
        )
    return CheckedAddress(scheme, host, port, check_host(host, port, field=field, resolver=resolver))


def check_host(host: str, port: int, *, field: str | None = None, resolver: Resolver = resolve) -> tuple[str, ...]:
    """The addresses of ``host``, all of which may be connected to. Raises Invalid, or Unresolvable."""
    try:
        found = list(dict.fromkeys(text.partition("%")[0] for text in resolver(host, port)))
    except (OSError, UnicodeError):
        found = []
    if not found:
        raise Unresolvable(f"The name {host} has no address. Check the spelling, or try again later.", field=field)
    if not is_listed(host) and not all(is_public_address(text) for text in found):
        raise Invalid(
            f"{host} is not a public host. An operator can allow it by COGRAPH_ALLOWED_PRIVATE_HOSTS.", field=field
        )
    return tuple(found)


def is_listed(host: str) -> bool:
    """Whether the operator allows private addresses (and http) for this host."""
    allowed = {name.lower().strip("[]").rstrip(".") for name in settings.COGRAPH.allowed_private_hosts}
    return host.lower().strip("[]").rstrip(".") in allowed


def is_public_address(text: str) -> bool:
    """False for loopback, private, link-local, shared, ULA, multicast, unspecified, reserved and wrapping addresses."""
    try:
        address: IPAddress = ipaddress.ip_address(text)
    except ValueError:
        return False
    if any(address in network for network in (*_WRAPPERS, *_SPECIAL) if network.version == address.version):
        return False
    return address.is_global and not (
        address.is_multicast or address.is_reserved or address.is_unspecified or address.is_loopback
    )


def _split(address: str, schemes: Sequence[str], field: str | None) -> tuple[str, str, int]:
    if address.startswith("-") or any(ord(character) <= 32 or ord(character) == 127 for character in address):
        raise Invalid("An address has no blanks or control characters and does not begin with a hyphen.", field=field)
    try:
        parts = urlsplit(address if "://" in address else f"https://{address}")
        port = parts.port
        host = (parts.hostname or "").lower()
    except ValueError:
        raise Invalid("This is not an address that can be read.", field=field) from None
    scheme = parts.scheme.lower()
    if scheme not in schemes:
        raise Invalid(f"An address begins with {' or '.join(f'{name}://' for name in schemes)}.", field=field)
    if parts.password is not None or (parts.username is not None and scheme != "ssh"):
        raise Invalid("An address carries no user name or password: use a credential.", field=field)
    if "\\" in address or not _is_host(host):
        raise Invalid("The address has no host that can be read.", field=field)
    return scheme, host, port or DEFAULT_PORTS[scheme]


def _is_host(host: str) -> bool:
    if ":" in host:
        try:
            return bool(ipaddress.IPv6Address(host))
        except ValueError:
            return False
    try:
        return bool(_HOST.fullmatch(host.encode("idna").decode()))
    except UnicodeError:
        return False
