"""Samples per device and label."""

from reports.figures import label_partition


def test_partition_is_drawn_once_for_all(drawn, two_schemes):
    panel = drawn(label_partition.label_partition, two_schemes).axes[0]
    assert panel.images[0].get_array().tolist() == [[30, 0, 5], [0, 20, 0]]
    assert len(label_partition.partitions(two_schemes)) == 1
