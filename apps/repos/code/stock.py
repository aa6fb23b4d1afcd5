"""How much of the public code the documents mention: by package, with its trend."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection

from apps.jobs.running import JobRun
from apps.repos.models import Repository
from apps.repos.models_code import CodeCoverage

# Public: exported types and functions of files that are neither tests nor set aside, not below a private module.
PUBLIC = """
    n.exported AND NOT n.test AND NOT n.side AND n.kind IN
    ('class', 'interface', 'struct', 'enum', 'trait', 'type', 'function', 'macro')
    AND f.path !~ '(^|/)(examples?|samples?|tests?|docs?|migrations|scripts|benchmarks?)/' AND f.path !~ '(^|/)_[^_]'
"""
PACKAGE = "regexp_replace(f.path, '/?[^/]*$', '')"
COVERAGE = f"""
    SELECT {PACKAGE} AS package, count(*) AS exported, count(*) FILTER (WHERE EXISTS
        (SELECT FROM repo_document_chunk_mentions m WHERE m.node_id = n.id)) AS documented
    FROM code_nodes n JOIN code_files f ON f.id = n.file_id
    WHERE n.repository_id = %s AND {PUBLIC} GROUP BY 1 ORDER BY 1
"""  # noqa: S608 - joined of fixed texts
"""Of the repository whose id is bound, the fields of ``PackageCoverage``."""


@dataclass(frozen=True, slots=True)
class PackageCoverage:
    """Public symbols of one folder, and how many of them a document mentions."""

    package: str
    exported: int
    documented: int

    @property
    def share(self) -> float:
        return self.documented / self.exported if self.exported else 1.0


def coverage_of(repository: Repository) -> list[PackageCoverage]:
    with connection.cursor() as cursor:
        cursor.execute(COVERAGE, [repository.pk])
        return [PackageCoverage(*row) for row in cursor.fetchall()]


def take_stock(run: JobRun, repository: Repository) -> None:
    """Add a row to the trend when the numbers are not those of the last one."""
    packages = coverage_of(repository)
    exported = sum(package.exported for package in packages)
    documented = sum(package.documented for package in packages)
    last = CodeCoverage.objects.filter(repository=repository).last()
    if (last is None and not exported) or (
        last is not None and (last.exported, last.documented) == (exported, documented)
    ):
        return
    with run.batch():
        CodeCoverage.objects.create(
            repository=repository,
            commit=repository.synced_commit,
            exported=exported,
            documented=documented,
            packages={package.package: [package.exported, package.documented] for package in packages},
        )
