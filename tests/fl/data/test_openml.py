"""Data from OpenML by scikit-learn: out of a cache in its layout, or without a network."""

import gzip
import hashlib
import json

import numpy as np
import pytest

from fl.data.datasets import load, locate
from fl.data.picture_sets import from_openml
from fl.errors import DataError

ARFF = """@RELATION tiny
@ATTRIBUTE p1 REAL
@ATTRIBUTE p2 REAL
@ATTRIBUTE class {0,1}
@DATA
0,255,1
51,0,0
255,102,1
"""


@pytest.fixture
def openml_cache(tmp_path, monkeypatch):
    """The folder of scikit-learn's data; every connection is refused."""
    monkeypatch.delenv("EDGESIM_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    return tmp_path / "openml" / "openml.org"


def feature(name, kind, is_target):
    asked = {"is_target": is_target, "is_ignore": "false", "is_row_identifier": "false"}
    asked["number_of_missing_values"] = "0"
    return {"index": "0", "name": name, "data_type": kind, **asked}


@pytest.mark.slow
def test_a_data_set_in_the_cache(openml_cache):
    about = {"id": "7", "name": "tiny", "version": "1", "format": "ARFF", "status": "active"}
    about |= {"url": "https://www.openml.org/data/v1/download/9/tiny.arff", "description": "tiny"}
    columns = [feature("p1", "numeric", "false"), feature("p2", "numeric", "false")]
    columns.append(feature("class", "nominal", "true"))
    quality = {"name": "NumberOfInstances", "value": "3"}
    checksum = hashlib.md5(ARFF.encode()).hexdigest()
    answers = {
        "api/v1/json/data/list/data_name/tiny/limit/2/data_version/1": {
            "data": {"dataset": [{"did": "7", "name": "tiny", "version": "1", "status": "active"}]}
        },
        "api/v1/json/data/7": {"data_set_description": about | {"md5_checksum": checksum}},
        "api/v1/json/data/features/7": {"data_features": {"feature": columns}},
        "api/v1/json/data/qualities/7": {"data_qualities": {"quality": [quality]}},
    }
    texts = {path: json.dumps(answer) for path, answer in answers.items()}
    for path, text in {**texts, "data/v1/download/9/tiny.arff": ARFF}.items():
        file = openml_cache / f"{path}.gz"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress(text.encode()))

    samples = from_openml("tiny", 2, (2,), ("zero", "one"))
    assert samples.y_train.tolist() == [1, 0] and samples.y_test.tolist() == [1]
    x_train, x_test = samples.images()
    assert np.allclose(x_train, [[0, 1], [0.2, 0]]) and np.allclose(x_test, [[1, 0.4]])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:A network error")
def test_without_files_and_without_a_network(openml_cache):
    sentence = r"mnist_784 is not here and cannot be fetched .*urlopen error.*EDGESIM_DATA"
    with pytest.raises(DataError, match=sentence):
        load("mnist")
    assert locate("mnist") == []
