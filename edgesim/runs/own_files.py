"""The user's own files that a run's folder keeps, so that the run is made again from there."""

from __future__ import annotations

from pathlib import Path

from edgesim.errors import ScenarioKeyError
from edgesim.extensions.user_code import files_below, measured_files, measured_names, user_files
from edgesim.records.checkpoint.run_checkpoint import RUN_FILES
from edgesim.records.checksums import CHANGED, SUMS, DamagedRunError, SummedFiles, damaged_files
from edgesim.runs.setup.data_source import KEPT_DATA
from edgesim.runs.setup.setup import Setup
from edgesim.scenario.documents.document import KeyPath
from edgesim.scenario.documents.yaml_text import is_of_run
from edgesim.scenario.learning.partition_schema import FilePartition
from fl.data.array_files import npz
from fl.data.own_data import own_arrays

KEPT_BYTES = 4 << 20  # of data that are copied into a run's folder, every point of a sweep its own


def refuse_names_of_run_files(setup: Setup) -> None:
    """Refuse files whose copies would take the places of what the run writes.

    Raises:
        ScenarioKeyError: a key names such a file.
    """
    scenario, source = setup.scenario, setup.source
    taken = {*RUN_FILES, *([KEPT_DATA] if source.in_memory else [])}
    named: dict[KeyPath, str] = measured_names(scenario)
    if isinstance(partition := scenario.learning.partition, FilePartition):
        named["learning", "partition", "file"] = partition.file
    for key, name in named.items():
        copies = files_below(scenario, [scenario.folder / name])
        if any(Path(copy).parts[0] in taken for copy in copies):
            problem = "whose copy in the run's folder would have the name of a file of the run"
            raise ScenarioKeyError(key, f"is {name}, {problem}; rename it")


def refuse_changed_copies(folder: Path) -> None:
    """Refuse to make a finished run again from a scenario or copies that changed since.

    Args:
        folder: of a scenario, which may be that of a run.

    Raises:
        DamagedRunError: the first file that is not as the run has written it.
    """
    path = folder / "scenario.yaml"
    if not is_of_run(path) or not (folder / SUMS).exists():
        return
    results = set(RUN_FILES) - {path.name}
    for _, problem in damaged_files(folder, results):
        raise DamagedRunError(f"{problem}; {CHANGED}")


def keep_own_files(path: Path, setup: Setup, files: SummedFiles) -> None:
    """Copy the user's code and small data, so that the resolved scenario runs again from here."""
    scenario, source = setup.scenario, setup.source
    names = files_below(scenario, user_files(scenario))
    measured = files_below(scenario, [*source.files, *measured_files(scenario)])
    if sum((scenario.folder / name).stat().st_size for name in measured) <= KEPT_BYTES:
        names += measured
    for name in names:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        files.write(path / name, (scenario.folder / name).read_bytes(), name)
    if scenario.learning.dataset == KEPT_DATA and source.in_memory and source.samples is not None:
        arrays = own_arrays(source.samples)
        if sum(array.nbytes for array in arrays.values()) <= KEPT_BYTES:
            files.write(path / KEPT_DATA, npz(arrays))
