"""What git says when it fails, as a code, a sentence, and whether trying again can help."""

from __future__ import annotations

import re
from dataclasses import dataclass


class GitFailure(Exception):
    """git ended with an error. ``text`` is its own output: pass it through the redactor before it goes anywhere."""

    def __init__(self, text: str, returncode: int) -> None:
        super().__init__("git failed")
        self.text = text
        self.returncode = returncode


class GitTimeout(Exception):
    """git took longer than allowed. ``seconds`` is the limit."""

    def __init__(self, seconds: float) -> None:
        super().__init__("git took too long")
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a fetch failed. ``lasting``: trying again cannot help. ``local``: our mirror is damaged, not the remote."""

    code: str
    message: str
    lasting: bool
    local: bool = False


CREDENTIAL = re.compile(
    r"could not read (?:Username|Password)|terminal prompts disabled|Authentication failed|Permission denied"
    r"|returned error: 40[13]|Invalid username or (?:password|token)|HTTP Basic: Access denied|access denied",
    re.IGNORECASE,
)
NOT_FOUND = re.compile(
    r"repository .* not found|Repository not found|does not appear to be a git repository|returned error: 4(?:04|10)"
    r"|project you were looking for could not be found|does not exist",
    re.IGNORECASE,
)
HOST_KEY = re.compile(r"Host key verification failed|REMOTE HOST IDENTIFICATION HAS CHANGED", re.IGNORECASE)
REDIRECT = re.compile(r"unable to update url base from redirection|returned error: 30[1278]", re.IGNORECASE)
OWNER = re.compile(r"dubious ownership", re.IGNORECASE)
DAMAGED = re.compile(
    r"loose object .* is corrupt|object file .* is empty|bad object|packfile .* (?:corrupt|cannot be accessed)"
    r"|unable to read (?:tree|sha1 file)|invalid sha1 pointer|not a git repository|shallow file has changed"
    r"|Unable to create .*\.lock|cannot lock ref|remote did not send all necessary objects|missing blob object",
    re.IGNORECASE,
)
BRANCH = re.compile(r"couldn't find remote ref", re.IGNORECASE)


def cause_of(text: str) -> Cause:
    """The cause that git's error text names."""
    if HOST_KEY.search(text):
        return Cause("host_key", "The host key is not in the known hosts file; add it there and sync again.", True)
    if REDIRECT.search(text):
        return Cause("redirected", "The address redirects; register the address it leads to.", True)
    if OWNER.search(text):
        return Cause("unsafe_owner", "The folder belongs to another user of this machine.", True)
    if NOT_FOUND.search(text):
        return Cause("not_found_upstream", "The repository was not found upstream; its content here is kept.", True)
    if CREDENTIAL.search(text):
        return Cause(
            "credential_refused", "The host refused access; enter a credential that may read the repository.", True
        )
    if BRANCH.search(text):
        return Cause("branch_not_found", "The branch is gone upstream; choose another one.", True)
    if DAMAGED.search(text):
        return Cause("mirror_damaged", "The local copy is damaged and will be fetched anew.", False, local=True)
    return Cause("unreachable", "The host could not be reached.", False)
