"""Code of the user's own is what stands in its file."""

import os

from edgesim.extensions.user_code import load_object


def test_a_file_edited_within_its_second_is_loaded_anew(tmp_path):
    """Of one size and time of change, as an editing script leaves it: no old bytecode is taken."""
    path, found = tmp_path / "mine.py", []
    for value in (1, 2):
        path.write_text(f"VALUE = {value}\n")
        os.utime(path, (1e9, 1e9))
        found.append(load_object(tmp_path, "./mine.py:VALUE", ("learning", "method"), True))
    assert found == [1, 2]
