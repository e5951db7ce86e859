"""Schemes of the paper with given latency, accuracy and uplink bits."""

from __future__ import annotations

import pytest

from reports.run_data.scheme_grouping import load_schemes

ROLES = {"joint": ("liu", "kkt"), "equal": ("liu", "equal"), "pruned": ("pruning-only", "kkt")}
ROLES |= {"personal": ("fedalt", "equal"), "fedavg": ("fedavg", "equal")}


@pytest.fixture
def schemes_of(tmp_path, write_run):
    """schemes_of(joint=(latency_s, accuracy, bits_up), ...) -> schemes of two rounds."""

    def make(**given):
        folders = []
        for label, (latency_s, accuracy, bits_up) in given.items():
            method, solver = ROLES[label]
            folders.append(
                write_run(
                    tmp_path / label, scheme=label, method=method, solver=solver, bits_up=bits_up,
                    latency_s=(latency_s,) * 2, accuracy=(0.1, accuracy),
                )
            )  # fmt: skip
        return load_schemes(folders)

    return make
