"""Tables as LaTeX and rounded numbers."""

import math

import pytest

from reports.styling.latex_text import latex_text
from reports.styling.number_formats import MEAN_COUNT, significant
from reports.text import summary_tables as tables


def test_latex_is_escaped(scheme_of):
    text = tables.cost_table([scheme_of(scheme=r"50% & a_b \x {$}")]).latex()
    assert r"50\% \& a\_b \textbackslash{}x \{\$\} & 25.00 & 0 &" in text
    assert text.count(r"\\") == 2 and r"\toprule" in text and r"\bottomrule" in text


def test_a_bar_is_one_in_the_default_encoding_of_latex_too():
    """OT1 prints a dash for |, as it prints other signs for < and >."""
    assert latex_text("a|b < c") == r"a\textbar{}b \textless{} c"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("*ours* <b> `x`", r"\*ours\* \<b> \`x\`"),
        ("_ours_ fed_avg", r"\_ours\_ fed_avg"),
        ("__init__", r"\_\_init\_\_"),
        ("a\\|b", r"a\\\|b"),
        ("[a](b) &lt; R&D", r"\[a](b) \&lt; R&D"),
        ("~~old~~ &#60;", r"\~\~old\~\~ \&#60;"),
        (r"$\rho$ for $5", r"\$\\rho\$ for \$5"),
    ],
)
def test_a_name_in_markdown_is_the_text_that_it_is(scheme_of, name, text):
    """Emphasis, code, links, HTML would take its signs; an underscore within a word is none."""
    row = tables.cost_table([scheme_of(scheme=name)]).markdown().splitlines()[-1]
    assert row.startswith(f"| {text} | 25.00 |")


def test_a_caption_in_markdown_is_the_text_that_it_is(scheme_of):
    """It has reasons that scenarios give, and names of schemes and metrics."""
    reason = "the *paper's* rates, <b> at $5$"
    one = scheme_of(extra=f'report: {{untuned: "{reason}"}}')
    caption = tables.scheme_table([one]).markdown().splitlines()[0]
    assert caption.endswith(r"Not a comparison of accuracies: the \*paper's\* rates, \<b> at \$5\$")
    assert tables.scheme_table([one]).caption.endswith(reason)


@pytest.mark.parametrize("name", ["[1] FedAvg", " [2]", "*joint", "*"])
def test_no_latex_row_begins_with_what_the_end_of_the_row_before_it_takes(scheme_of, name):
    r"""After \\ and \midrule a [ begins a length; the star of \\* forbids a page break."""
    table = tables.cost_table([scheme_of(scheme="a"), scheme_of(scheme=name)])
    rows = table.latex().splitlines()
    assert rf"{{}}{name} & 25.00 & 0 &" in rows[-3] and rows[-4].startswith("a & 25.00")


def test_no_greek_letter_is_left_to_latex():
    promised = tables.Column("x", f"Σ{tables.RHO} per % late")
    text = tables.Table("t", "", (promised,), ((0.5,),)).latex()
    assert r"$\Sigma$$\rho$ per \% late \\" in text


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\n\n"])
def test_a_name_of_several_lines_is_one_row(scheme_of, end):
    table = tables.cost_table([scheme_of(scheme=f"one{end}two")])
    assert "one two |" in " ".join(table.markdown().splitlines()[-1].split())
    assert "one two &" in " ".join(table.latex().splitlines()[-3].split())


@pytest.mark.parametrize(
    ("mean", "half", "text"),
    [
        (161.2, 7.65, "161.2 ± 7.7"),
        (0.025, 0.0, "25.00"),
        (0.025, 5e-17, "25.00"),  # what rounding leaves of equal seeds
        (0.025, 1e-9, "25.00 ± 1e-06"),  # narrow is not none
        (0.025, 3.2e-6, "25.00 ± 0.003"),
        (0.025, 6e-6, "25.00 ± 0.01"),
        (0.0, 0.0, "0"),
        (12_345.0, 1234.5, "12\u2009340 ± 1\u2009234"),
        (0.051234, 0.123456, "51.23 ± 123.46"),  # not 123.50: no zero stands in for a digit
        (0.0, 0.0004, "0 ± 0.4000"),
    ],
)
def test_an_interval_has_the_decimals_of_its_mean(mean, half, text):
    show = significant(4, 1e3 if mean < 1 else 1)
    columns = tables.Column("x", "X", show), tables.Column("h", "H", show, half_of="x")
    assert tables.Table("t", "", columns, ((mean, half),)).cells()[0][0] == text


@pytest.mark.parametrize(
    ("mean", "half", "text"),
    [
        (3.0, 0.7, "3.0 ± 0.7"),
        (3.0, 1.24, "3.0 ± 1.2"),
        (3.0, 0.04, "3.00 ± 0.04"),
        (3.0, 2.0, "3 ± 2"),
        (300.0, 12.4, "300 ± 12"),
        (8.5, 12.42, "8.5 ± 12.4"),
        (12_345.0, 0.7, "12\u2009345.0 ± 0.7"),
        (12_345.0, 4e-5, "12\u2009345 ± 4e-05"),
    ],
)
def test_a_whole_mean_has_the_decimals_of_its_interval(mean, half, text):
    columns = tables.Column("x", "X", MEAN_COUNT), tables.Column("h", "H", MEAN_COUNT, half_of="x")
    table = tables.Table("t", "", columns, ((mean, half),))
    assert table.cells()[0][0] == text
    assert f"\n{latex_text(text)} " in table.latex()
    wide = tables.Column("x", "X", significant(4)), columns[1]
    assert tables.Table("t", "", wide, ((1234.56, 0.3),)).cells()[0][0] == "1\u2009234.6 ± 0.3"


def test_the_late_share_of_a_scheme_is_shown_though_rare(scheme_of):
    one = scheme_of()
    one.first.rounds["selected"] = 12000 / len(one.first.rounds)
    one.first.rounds["late"] = [3] + [0] * (len(one.first.rounds) - 1)
    table = tables.cost_table([one])
    titles = [table.columns[i].title for i in table.filled()]
    row = table.markdown().splitlines()[-1].strip("| ").split(" | ")
    assert dict(zip(titles, row, strict=True))["Late (%)"] == "0.03"


def test_a_page_takes_the_first_rows_only(scheme_of):
    three = tables.cost_table([scheme_of(scheme=name) for name in ("a", "b", "c")])
    assert [row[0] for row in three.cells(2)] == ["a", "b"] and len(three.cells()) == 3


@pytest.mark.parametrize(("loss", "text"), [(math.inf, "Infinity"), (-math.inf, "-Infinity")])
def test_the_page_sorts_by_numbers_as_its_script_reads_them(loss, text):
    """JavaScript reads inf, the loss of training that diverged, as no number at all."""
    table = tables.Table("t", "", (tables.Column("loss", "Loss"),), ((loss,), (0.5,), (None,)))
    assert [table.sort_value(r, 0) for r in range(3)] == [text, "0.5", ""]
    assert table.csv().splitlines()[1] == str(loss)


def test_means_that_their_decimals_tell_apart_do_not_look_equal():
    """Beside a narrow interval a mean shows more than its four figures: 1 234.4 is not 1 233.8."""
    columns = (
        tables.Column("x", "X", significant(4), best="min"),
        tables.Column("h", "H", significant(4), half_of="x"),
    )
    table = tables.Table("t", "", columns, ((1233.8, 0.1), (1234.4, 0.1), (1250.0, 0.1)))
    assert [row[0] for row in table.cells()][:2] == ["1\u2009233.8 ± 0.1", "1\u2009234.4 ± 0.1"]
    assert table.best() == {(0, 0)}
    without = tables.Table("t", "", columns, ((1233.8, 0.0), (1234.4, 0.0), (1250.0, 0.0)))
    assert without.best() == {(0, 0), (1, 0)}  # both are 1 234
