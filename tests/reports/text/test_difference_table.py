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


def test_a_long_value_is_cut_where_it_differs_least(two_schemes):
    """A path, which has no blank, was nothing but an ellipsis."""
    one, other = two_schemes
    folder = "/home/somebody/" + "a-long-name/" * 6
    table = difference_table(
        [with_keys(one, "A", trace=f"{folder}a.csv"), with_keys(other, "B", trace=f"{folder}b.csv")]
    )
    shown = [row[2] for row in table.cells()]
    assert [len(text) for text in shown] == [60, 60]
    assert shown[0].startswith("/home/somebody/") and shown[0].endswith("/a.csv")
    assert shown[1].endswith("/b.csv")


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


def test_points_of_a_sweep_are_named_together(swept_schemes):
    """Two methods at two thresholds and three bands: a line named up to six long labels."""
    rows = difference_table(swept_schemes).rows
    assert {who for key, _, who in rows if key == "network.bandwidth"} == {
        "all at bandwidth 10 MHz", "all at bandwidth 20 MHz", "all at bandwidth 40 MHz"
    }  # fmt: skip
    assert ("learning.method.name", "fedavg", "fedavg") in rows
    for places, name in (
        ((6, 7), "fedavg (bandwidth 10 MHz)"),
        ((0, 4), f"{swept_schemes[0].label}, {swept_schemes[4].label}"),
    ):
        changed = [
            replace(each, values=each.values | {"x": str(i in places)})
            for i, each in enumerate(swept_schemes)
        ]
        assert ("x", "True", name) in difference_table(changed).rows
