"""Names that values of a language itself have. Where only the name of a member is known, one of these says nothing:
``text.join(…)`` is no call of the one ``join`` that a repository happens to define."""

from __future__ import annotations

_PYTHON = " ".join(
    name
    for type_ in (str, bytes, bytearray, list, dict, set, frozenset, int, float, type(iter(())))
    for name in dir(type_)
    if not name.startswith("_")
)
_PYTHON_MORE = "close flush read readline readlines seek tell truncate write writelines send throw setter getter"
_ECMASCRIPT = (
    "add all any apply at bind call catch charAt charCodeAt clear concat delete endsWith entries every fill filter"
    " finally find findIndex flat flatMap forEach from get has includes indexOf isArray join keys lastIndexOf length"
    " map match matchAll next padEnd padStart pop push reduce reduceRight repeat replace replaceAll resolve reverse"
    " search set shift slice some sort splice split startsWith substring test then toFixed toLowerCase toString"
    " toUpperCase trim trimEnd trimStart unshift valueOf values"
)
_JAVA = (
    "add addAll charAt clear clone collect compareTo contains containsKey endsWith entrySet equals filter forEach get"
    " getClass getKey getMessage getName getOrDefault getValue hashCode hasNext indexOf isEmpty isPresent iterator join"
    " keySet length map name next of orElse ordinal put putAll remove replace set size sort split startsWith stream"
    " substring toArray toList toString trim valueOf values"
)
_RUST = (
    "as_bytes as_mut as_ref as_str borrow borrow_mut chars clear clone cloned cmp collect contains contains_key copied"
    " default drain entry enumerate eq err expect extend filter filter_map find first flat_map fmt fold from get"
    " get_mut insert into into_iter is_empty is_err is_none is_ok is_some iter iter_mut join keys last len lines lock"
    " map map_err max min next ok ok_or or_else pop push push_str read remove replace rev skip sort split starts_with"
    " sum take to_owned to_string to_vec trim unwrap unwrap_or unwrap_or_default unwrap_or_else values write zip"
)
_GO = "Error String"

OF_VALUES: dict[str, frozenset[str]] = {
    "python": frozenset(f"{_PYTHON} {_PYTHON_MORE}".split()),
    "ecmascript": frozenset(_ECMASCRIPT.split()),
    "java": frozenset(_JAVA.split()),
    "rust": frozenset(_RUST.split()),
    "go": frozenset(_GO.split()),
}
"""By family of languages: the members of strings, numbers, lists, maps, files."""

_BROWSER = (
    "JSON URL console document globalThis history localStorage location navigator performance process"
    " sessionStorage window"
)
_TYPES = "bool bytearray bytes dict float frozenset int list object set str tuple type"

OBJECTS: dict[str, frozenset[str]] = {"python": frozenset(_TYPES.split()), "ecmascript": frozenset(_BROWSER.split())}
"""Names known without an import that lead out of the repository; types, which begin in upper case, need no list."""
