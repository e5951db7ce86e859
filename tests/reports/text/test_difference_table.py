"""The table of keys in which schemes differ."""

from dataclasses import replace

from reports.text.difference_table import difference_table


def with_keys(scheme, label, **keys):
    return replace(scheme, label=label, values=keys)


def test_a_few_keys_have_a_column_each(two_schemes):
    one, other = two_schemes
    table = difference_table([with_keys(one, "A", lr="1"), with_keys(other, "B", lr="2")])
    assert [column.name for column in table.columns] == ["scheme", "seeds", "lr"]
    assert table.rows == (("A", "0", "1"), ("B", "0", "2"))
    assert difference_table([one]) is None


def test_many_keys_have_a_line_for_each_value(two_schemes):
    one, _ = two_schemes
    keys = [f"key{i}" for i in range(7)]
    plain = dict.fromkeys(keys, "1")
    schemes = [with_keys(one, "A", **dict.fromkeys(keys, "2"))]
    schemes += [with_keys(one, "B", **{**plain, "key0": "3"})]
    schemes += [with_keys(one, name, **plain) for name in ("C", "D", "E")]
    table = difference_table(schemes)
    assert table.rows[:3] == (("key0", "2", "A"), ("key0", "3", "B"), ("key0", "1", "all others"))
    assert table.rows[3:5] == (("key1", "2", "A"), ("key1", "1", "all others"))
    few = difference_table([schemes[0], with_keys(one, "C", key0="1")])
    assert ("key1", None, "C") in few.rows  # C does not have it
    assert r"\begin{tabular}{lp{0.25\linewidth}p{0.35\linewidth}}" in table.latex()
