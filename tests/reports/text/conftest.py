"""Schemes of the paper with given latency, accuracy and uplink bits."""

from __future__ import annotations

import pytest

from reports.run_data.scheme_grouping import load_schemes

METHODS = {"joint": ("liu", "kkt"), "equal": ("liu", "equal"), "pruned": ("pruning-only", "kkt")}
METHODS |= {"personal": ("fedalt", "equal"), "fedavg": ("fedavg", "equal")}
ROLES = "{joint: proposed, equal: equal-resource, pruned: pruning-only, "
ROLES += "personal: personalization-only}"
ON_PAPER = {"model": "liu-cnn", "dataset": "mnist"}


@pytest.fixture
def schemes_of(tmp_path, write_run):
    """schemes_of(joint=(latency_s, accuracy, bits_up), ...) -> schemes of two rounds.

    More than one seed: seed i adds i times the step to the accuracy of every scheme but fedavg.
    """

    def make(seeds=1, step=0.0, beside="liu", learning=ON_PAPER, untuned="", **given):
        folders = []
        report = f"report: {{beside: {beside}, schemes: {ROLES}}}" if beside else ""
        report = f"report: {{untuned: {untuned}}}" if untuned else report
        for label, (latency_s, accuracy, bits_up) in given.items():
            method, solver = METHODS[label]
            for seed in range(seeds):
                last = accuracy + step * seed * (1 if label == "joint" else 0)
                place = tmp_path / untuned[:1] / f"{label}-{seed}"
                folders.append(
                    write_run(
                        place, scheme=label, method=method, solver=solver,
                        bits_up=bits_up, latency_s=(latency_s,) * 2, accuracy=(0.1, last),
                        extra=report, seed=seed, learning=learning,
                    )
                )  # fmt: skip
        return load_schemes(folders)

    return make
