"""Names of run folders that a person can read: scheme and changed keys, then what tells them apart.

The last part of a name is a digest, by which a folder is found again whatever stands before it.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from edgesim.errors import ScenarioError
from edgesim.scenario.documents.yaml_text import MAX_RESOLVED_BYTES, read_text
from edgesim.scenario.loader import Scenario, load
from fl.regular_files import read_regular

MAX_LETTERS = 80  # of the part that is for people
_LABEL = re.compile(rb"^scheme: .*$", re.MULTILINE)


def default_folder(scenario: Scenario) -> Path:
    """Where `edgesim run` writes a run: named by its content, so a change is another run.

    Such as ``runs/demo/joint,bandwidth=10MHz-1a2b3c4d-s0``; a folder of the same digest, seed and
    scheme that is there already is taken, whatever its name says of the keys.
    """
    place, end = Path("runs") / scenario.name, f"-{scenario.digest()[:8]}-s{scenario.seed}"
    same = sorted(path for path in place.glob(f"*{end}") if path.is_dir())
    # overrides can make schemes equal in all but the label, which is in no digest
    known = [path for path in same if kept_label(path) == scenario.scheme]
    changes = {key: text for key, text in scenario.changes().items() if key != "seed"}
    return known[0] if known else place / f"{readable_name(scenario.label, changes)}{end}"


def kept_label(folder: Path) -> str | None:
    """Label of the scheme in scenario.yaml of a run's folder; None: none, or none to be read."""
    try:
        found = _LABEL.search(read_regular(folder / "scenario.yaml", MAX_RESOLVED_BYTES))
        return read_text(found[0].decode(), str(folder)).tree["scheme"] if found else None
    except (OSError, UnicodeDecodeError, ScenarioError):
        return None


def folder_for_seed(run: Path, scenario: Scenario) -> Path:
    """Where the run of a folder is made with a seed: there with its own, beside it with another.

    Beside ``runs/demo/joint-s0`` is ``runs/demo/joint-s3``, and beside ``mine`` is ``mine-s3``.
    Beside a point of a sweep lie the points alone: another seed has its default folder.

    Args:
        run: folder of a run.
        scenario: of the run that is wanted.
    """
    own, seed = load(run / "scenario.yaml").seed, scenario.seed
    if seed == own:
        return run
    if sweep_of_point(run):
        return default_folder(scenario)
    whole = run.resolve()
    stem = re.sub(rf"(^|-)s{own}$", "", whole.name)
    name = f"{stem}-s{seed}" if stem else f"s{seed}"
    return Path(os.path.relpath(whole.with_name(name)))


def sweep_of_point(run: Path) -> Path | None:
    """The folder of the sweep among whose points the folder of a run lies."""
    sweep = run.resolve().parent.parent
    return sweep if (sweep / "sweep.json").is_file() else None


def readable_name(label: str, values: Mapping[str, str]) -> str:
    """Such as ``joint,bandwidth=10MHz,rounds=5``, fit for the name of a folder.

    Args:
        label: of the scheme.
        values: key -> its value as text.
    """
    names = short_names(values)
    parts = [re.sub(r"\W+", "-", label).strip("-")]
    parts += [f"{names[key]}={_plain(text)}" for key, text in values.items()]
    return ",".join(parts)[:MAX_LETTERS].rstrip(",-=")


def _plain(text: str) -> str:
    plain = re.sub(r"[^\w.+-]+", "-", text.replace(" ", "")).strip("-")
    return f"-{plain}" if re.match(r"-\.?\d", text) else plain


def short_names(keys: Iterable[str]) -> dict[str, str]:
    """Keys by their last word, or in full where two end alike."""
    last = {key: key.rpartition(".")[2] for key in keys}
    count = Counter(last.values())
    return {key: word if count[word] == 1 else key for key, word in last.items()}
