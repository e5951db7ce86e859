"""The table of keys in which schemes differ."""

from __future__ import annotations

from edgesim.results.flat_scenario import differing_keys
from reports.run_data.scheme_grouping import Scheme
from reports.run_data.swept_keys import describe, short_names, value_text
from reports.styling.table_formats import SCHEME, Column, Table

DIFFERENCES = (
    "Every key of the resolved scenarios in which the schemes differ; a dash: the scenario does "
    "not have it."
)
MOST_KEY_COLUMNS = 2  # of the table of differences: names of keys are long, and pages narrow


def difference_table(schemes: list[Scheme]) -> Table | None:
    """The keys in which schemes differ; None with one scheme.

    One line per scheme and a column per key; of many keys one line per key and value.
    """
    if len(schemes) < 2:
        return None
    keys = differing_keys([scheme.values for scheme in schemes])
    if len(keys) > MOST_KEY_COLUMNS:
        return _differences_by_value(schemes, keys)
    columns = [SCHEME, Column("seeds", "Seeds", number=False)]
    columns += [Column(key, key, shortened, number=False) for key in keys]
    rows = []
    for scheme in schemes:
        seeds = ", ".join(str(run.seed) for run in scheme.runs)
        rows.append((scheme.label, seeds, *(_value(scheme, key) for key in keys)))
    return Table("differences", DIFFERENCES, tuple(columns), tuple(rows))


def _differences_by_value(schemes: list[Scheme], keys: list[str]) -> Table:
    columns = (
        Column("key", "Key", number=False),
        Column("value", "Value", shortened, number=False, wide=0.25),
        Column("schemes", "Schemes", number=False, wide=0.35),
    )
    names, rows = _group_names(schemes), []
    for key in keys:
        found: dict[str | None, list[Scheme]] = {}
        for scheme in schemes:
            found.setdefault(_value(scheme, key), []).append(scheme)
        most = max(found, key=lambda value: len(found[value]))
        many = len(found[most]) > max(2, len(schemes) // 2)
        rest = [(key, most, "all others")] if many and found.pop(most) else []
        rows += [(key, value, _called(group, names)) for value, group in found.items()] + rest
    return Table("differences", DIFFERENCES, columns, tuple(rows))


def _value(scheme: Scheme, key: str) -> str | None:
    text = scheme.values.get(key)
    return None if text is None else value_text(text)


def _group_names(schemes: list[Scheme]) -> dict[frozenset[Scheme], str]:
    """What points of a sweep are called together: "liu", "all at rounds 2", "liu (rounds 2)"."""
    keys = list(dict.fromkeys(key for scheme in schemes for key in scheme.numbers))
    short = short_names(keys)
    groups: dict[str, list[Scheme]] = {}
    for scheme in schemes:
        groups.setdefault(scheme.series, []).append(scheme)
        for text in describe(scheme.values, keys, short):
            groups.setdefault(f"all at {text}", []).append(scheme)
            groups.setdefault(f"{scheme.series} ({text})", []).append(scheme)
    return {frozenset(group): name for name, group in reversed(groups.items()) if len(group) > 1}


def _called(group: list[Scheme], names: dict[frozenset[Scheme], str]) -> str:
    """The names of some schemes: of all together, else of those of each series, else labels."""
    if name := names.get(frozenset(group)):
        return name
    series: dict[str, list[Scheme]] = {}
    for scheme in group:
        series.setdefault(scheme.series, []).append(scheme)
    return ", ".join(
        names.get(frozenset(own)) or ", ".join(scheme.label for scheme in own)
        for own in series.values()
    )


def shortened(text: str) -> str:
    """A long value with its beginning and its end."""
    return text if len(text) <= 60 else f"{text[:29]}…{text[-30:]}"
