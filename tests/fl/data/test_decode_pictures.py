"""Tiny-ImageNet and CINIC-10 on generated miniatures of their official layout."""

import sys

import numpy as np
import pytest
from PIL import Image

from fl.data import decode_pictures
from fl.data.datasets import load, locate
from fl.data.decode_pictures import decode
from fl.errors import DataError

RNG = np.random.default_rng(0)


def picture(path, side, grey=False):
    path.parent.mkdir(parents=True, exist_ok=True)
    shape = (side, side) if grey else (side, side, 3)
    pixels = RNG.integers(0, 256, shape, dtype=np.uint8)
    Image.fromarray(pixels).save(path)
    return pixels


@pytest.fixture
def tiny(tmp_path):
    """Two classes, not in the order of their names, of three pictures; two to test on."""
    folder = tmp_path / "tiny-imagenet-200"
    for name in ("n02", "n01"):
        for i in range(3):
            picture(folder / "train" / name / "images" / f"{name}_{i}.JPEG", 64, grey=i == 2)
    (folder / "wnids.txt").write_text("n02\nn01\n")
    rows = []
    for i, name in enumerate(("n01", "n02")):
        picture(folder / "val" / "images" / f"val_{i}.JPEG", 64)
        rows.append(f"val_{i}.JPEG\t{name}\t0\t0\t63\t63\n")
    (folder / "val" / "val_annotations.txt").write_text("".join(rows))
    return folder


@pytest.fixture
def cinic(tmp_path):
    folder, kept = tmp_path / "CINIC-10", {}
    for part in ("train", "valid", "test"):
        for name in ("automobile", "airplane"):
            for file in ("cifar10-train-1.png", "n0001_2.png", "n0001_3.png"):
                path = folder / part / name / file
                kept[part, name, file] = picture(path, 32)
    return folder, kept


def test_tiny_imagenet_has_the_labels_of_its_list_and_tests_on_what_is_annotated(tiny, tmp_path):
    assert decode(tiny, tmp_path / "tiny-imagenet") == (6, 2)
    samples = load("tiny-imagenet", tmp_path)
    assert samples.classes == ("n02", "n01") and samples.input_shape == (3, 64, 64)
    assert samples.y_train.tolist() == [0, 0, 0, 1, 1, 1] and samples.y_test.tolist() == [1, 0]
    x_train, x_test = samples.images()
    assert x_train.dtype == np.float32 and x_test.shape == (2, 3, 64, 64)
    assert np.array_equal(x_train[2, 0], x_train[2, 2])  # a grey picture has equal planes
    assert not np.array_equal(x_train[0, 0], x_train[0, 2])
    names = {path.name for path in locate("tiny-imagenet", tmp_path)}
    assert {"x_train.npy", "y_test.npy", "classes.npy"} <= names


def test_cinic_10_pixel_by_pixel_and_without_what_comes_from_cifar_10(cinic, tmp_path):
    folder, kept = cinic
    assert decode(folder, tmp_path / "cinic10") == (6, 6)
    samples = load("cinic10", tmp_path)
    assert samples.classes == ("airplane", "automobile")
    x_train, _ = samples.images()
    expected = kept["train", "automobile", "n0001_2.png"].transpose(2, 0, 1)
    assert np.array_equal((x_train[4] * 255).round().astype(np.uint8), expected)
    assert decode(folder, tmp_path / "other", only_imagenet=True) == (4, 4)


@pytest.mark.parametrize("place, wrong", [(8, b"\0\0\0\x04"), (33, b"\0\0\0\x10")])
def test_a_damaged_png_is_named(cinic, tmp_path, place, wrong):
    """A header of 4 bytes, and pixels behind which no name follows."""
    path = cinic[0] / "train" / "airplane" / "n0001_2.png"
    whole = path.read_bytes()
    path.write_bytes(whole[:place] + wrong + whole[place + len(wrong) :])
    with pytest.raises(DataError, match=r"n0001_2\.png is no picture"):
        decode(cinic[0], tmp_path / "cinic10")


def test_what_is_missing_is_named_with_the_archive_and_the_command(tmp_path):
    with pytest.raises(DataError, match=r"248,100,043 bytes.*fl\.data\.decode_pictures"):
        load("tiny-imagenet", tmp_path)
    with pytest.raises(DataError, match=r"x_train\.npy is missing.*687,544,992 bytes"):
        locate("cinic10", tmp_path)


@pytest.mark.slow
def test_what_cannot_be_decoded_is_one_sentence_and_no_data_set(
    tiny, tmp_path, monkeypatch, capsys
):
    with pytest.raises(DataError, match=r"neither tiny-imagenet-200 .* nor CINIC-10"):
        decode(tmp_path, tmp_path / "out")
    picture(tiny / "train" / "n01" / "images" / "n01_2.JPEG", 32)
    with pytest.raises(DataError, match=r"n01_2\.JPEG is a picture of 32x32; expected 64x64"):
        decode(tiny, tmp_path / "tiny-imagenet")
    assert not (tmp_path / "tiny-imagenet" / "x_train.npy").exists()
    (tiny / "train" / "n01" / "images" / "n01_2.JPEG").write_bytes(b"no picture")
    arguments = ["decode_pictures", str(tiny), str(tmp_path / "tiny-imagenet")]
    monkeypatch.setattr(sys, "argv", arguments)
    assert decode_pictures.main() == 2
    assert "n01_2.JPEG is no picture" in capsys.readouterr().err
    (tiny / "train" / "n01" / "images" / "n01_2.JPEG").unlink()
    with pytest.raises(DataError, match=r'2 pictures of class "n01" where "n02" has 3.*unpacked'):
        decode(tiny, tmp_path / "tiny-imagenet")
    (tiny / "val" / "val_annotations.txt").write_text("val_0.JPEG\tn07\t0\t0\t1\t1\n")
    with pytest.raises(DataError, match=r'val_annotations\.txt:1: class "n07" is not in wnids'):
        decode(tiny, tmp_path / "tiny-imagenet")
