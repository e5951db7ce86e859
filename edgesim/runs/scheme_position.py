"""What reports read of a finished run's scenario: place and label of its scheme, section report.

None of it decides a result, so that no run is made again where the scenario's file has changed it.
"""

from __future__ import annotations

import re
from pathlib import Path

from edgesim.records.checkpoint.usable_folder import REPLACE, FolderError
from edgesim.records.checksums import SummedFiles, read_sums
from edgesim.records.folder_names import kept_label
from edgesim.scenario.loader import Scenario

_REPORT = re.compile(r"^report:.*\n(?: .*\n)*", re.MULTILINE)
_AFTER_REPORT = re.compile(r"^(?=scheme: |provenance:)|\Z", re.MULTILINE)
_PLACE = re.compile(r"^(scheme: .*\n)(?:scheme_position: .*\n)?", re.MULTILINE)


def refuse_other_label(folder: Path, scenario: Scenario) -> None:
    """Refuse a finished run that is the same but for the label of its scheme, which reports show.

    Raises:
        FolderError: its scheme has another label, or none.
    """
    kept, wanted = kept_label(folder), scenario.scheme
    if kept != wanted:
        labels = f"{kept or 'none'}, not {wanted or 'none'}"
        raise FolderError(f"{folder} holds this run under another label: {labels}; {REPLACE}")


def renew_scheme_position(folder: Path, scenario: Scenario) -> None:
    """Write the scheme's place and the section report, as they are by now, into scenario.yaml.

    A kill between the two files leaves a damaged one, which the same command writes anew.

    Args:
        folder: of a finished run.
        scenario: the same one, as its file has it now.

    Raises:
        OSError: a file cannot be read or written.
    """
    path = folder / "scenario.yaml"
    before = path.read_text(encoding="utf-8")
    text = _AFTER_REPORT.sub(lambda _: scenario.report_yaml(), _REPORT.sub("", before), count=1)
    if scenario.scheme_position is not None:
        place = f"scheme_position: {scenario.scheme_position}\n"
        text = _PLACE.sub(lambda found: found[1] + place, text, count=1)
    if text != before:
        files = SummedFiles(read_sums(folder))
        files.write(path, text)
        files.write_sums(folder)
