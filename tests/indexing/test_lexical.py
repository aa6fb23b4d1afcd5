from __future__ import annotations

import pytest

from tests.indexing.shelf import a_shelf, paths, write

pytestmark = pytest.mark.usefixtures("shelves")


def test_retrieval_fact_01_a_name_is_found_by_its_words_and_in_any_case():
    write(a_shelf(), one="call createServer now", other="nothing of the kind")
    for query in ("createServer", "create server", "createserver", "CREATESERVER"):
        assert paths(query) == ["one.md"], query
