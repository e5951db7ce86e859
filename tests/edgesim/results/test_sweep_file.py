"""The reader of sweep.json."""

import pytest

from edgesim.errors import ResultsError
from edgesim.results.sweep_file import sweep_points


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"points": [{}]}', '{"points": 3}'])
def test_a_broken_sweep_json_is_one_sentence(tmp_path, text):
    (tmp_path / "sweep.json").write_text(text)
    with pytest.raises(ResultsError, match=r"sweep\.json") as error:
        sweep_points(tmp_path)
    assert "\n" not in str(error.value)
