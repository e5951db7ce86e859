"""Files that are replaced as a whole."""

import pytest

from edgesim.records.atomic_files import write_atomic


@pytest.mark.parametrize("link", ["file", "file.new"])
def test_nothing_is_written_through_a_link(tmp_path, link):
    """As a run folder of unknown origin may have one in the place of a file."""
    precious, path = tmp_path / "precious", tmp_path / "run" / "file"
    precious.write_text("mine")
    path.parent.mkdir()
    path.with_name(link).symlink_to(precious)
    write_atomic(path, "new")
    assert precious.read_text() == "mine"
    assert path.read_text() == "new" and not path.is_symlink()
    assert [each.name for each in path.parent.iterdir()] == ["file"]
