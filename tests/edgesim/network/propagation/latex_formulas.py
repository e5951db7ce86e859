"""Evaluate formulas that are written in LaTeX, as TR 38.901 has them."""

import math
import re

FUNCTIONS = {"lg": math.log10, "exp": math.exp, "max": max, "min": min}
KNOWN = {**FUNCTIONS, "pi": math.pi, "nan": math.nan}
# LaTeX -> Python, in this order
WORDS = {
    r"\log_{10}": " lg ",
    "log10": " lg ",
    "d_{2D-out}": " d2 ",
    "d_{2D-in}": " d2 ",
    "d_{2D}": " d2 ",
    "d_{3D}": " d3 ",
    "d'_{BP}": " corner ",
    "d_{BP}": " corner ",
    "C'(h_{UT})": " C ",
    "h_{BS}": " h_bs ",
    "h_{UT}": " h_ut ",
    "f_c": " fc ",
    "PL'": "PLN",
    r"\left": "",
    r"\right": "",
    r"\le": "<=",
    r"\cdot": "*",
    "[": "(",
    "]": ")",
    "^": "**",
}


def expression(latex):
    """A formula without cases as Python, with its products written out."""
    latex = re.sub(r"\\dfrac\{([^{}]*)\}\{([^{}]*)\}", r"((\1)/(\2))", latex)
    latex = re.sub(r"([\d.]+)km\b", r"\g<1>e3", latex)
    latex = re.sub(r"(\d)m\b", r"\1", latex)
    plain = latex.replace("{", "(").replace("}", ")").replace("\\", " ")
    tokens = re.findall(r"\d+\.?\d*(?:e\d)?|\w+|\*\*|<=|\S", plain)
    written = ""
    for left, token in zip(["", *tokens], tokens, strict=False):
        product = re.search(r"[\w.)]$", left) and re.match(r"\w|\(", token)
        written += f"{' *' if product and left not in FUNCTIONS else ''} {token}"
    return written


def definitions(latex):
    """The definitions of an entry, separated by semicolons: {name: Python}."""
    for word, name in WORDS.items():
        latex = latex.replace(word, name)
    latex = re.sub(r"_\{?([\w-]+)\}?", lambda m: "_" + m[1].replace("-", "_"), latex)
    found = {}
    for part in re.sub(r", \\text.*?;", ";", latex + ";").split(";")[:-1]:
        name, text = part.replace(r"\quad", "").split("=", 1)
        cases = re.fullmatch(r"\s*\\begin\{cases\}(.*)\\end\{cases\}\s*", text)
        if cases:
            rows = (map(expression, row.split("&")) for row in cases[1].split(r"\\"))
            found[name.strip()] = "".join(f"({v}) if {c} else " for v, c in rows) + "nan"
        else:
            found[name.strip()] = expression(text)
    return found


class Names(dict):
    """Values by name; those that are defined are evaluated when they are asked for."""

    def __init__(self, formulas, values):
        super().__init__(KNOWN, **values)
        self.formulas = {k: v for latex in formulas for k, v in definitions(latex).items()}

    def __missing__(self, name):
        text = self.formulas[name]
        # the only formula that is taken at another distance: PL_1(d_BP) of RMa
        at_corner = f"({re.sub('d3', 'corner', self.formulas.get('PL_1', ''))})"
        return eval(text.replace("PL_1 * ( corner )", at_corner), {}, self)
