"""Quotas of control groups, of both versions, on made-up systems: the least on the way up counts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from weft.native import _rt


def system(root: Path, files: Mapping[str, str]) -> str:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return str(root)


def v2(path: str, quota: str) -> dict[str, str]:
    return {f"sys/fs/cgroup{path}/cpu.max": f"{quota} 100000\n"}


def v1(folder: str, quota: int, period: int = 100000) -> dict[str, str]:
    return {f"{folder}/cpu.cfs_quota_us": f"{quota}\n", f"{folder}/cpu.cfs_period_us": f"{period}\n"}


V2_TREE = v2("/a", "250000") | v2("/a/b", "max") | v2("/a/b/c", "800000") | v2("/other", "100000")


@pytest.mark.parametrize(
    ("group", "wanted"), [("/a/b/c", 3), ("/a/b", 3), ("/other", 1), ("/a/gone/too", 3), ("/none", 0)]
)
def test_version_2(tmp_path: Path, group: str, wanted: int) -> None:
    assert _rt.quota_cpus(system(tmp_path, V2_TREE | {"proc/self/cgroup": f"0::{group}\n"})) == wanted


V1_GROUP = "5:memory:/user\n4:cpu,cpuacct:/user.slice/session\n3:cpuset:/x\n1:name=systemd:/user.slice\n"


@pytest.mark.parametrize("folder", ["cpu", "cpu,cpuacct", "cpuacct,cpu"])
@pytest.mark.parametrize(
    ("quotas", "wanted"),
    [
        ({"": 150000}, 2),
        ({"": -1, "/user.slice/session": 300000}, 3),
        ({"": -1, "/user.slice": 100000, "/user.slice/session": 300000}, 1),
        ({"": -1, "/user.slice": -1, "/user.slice/session": -1}, 0),
        ({"": -1, "/elsewhere": 100000}, 0),
    ],
)
def test_version_1_at_the_usual_places(tmp_path: Path, folder: str, quotas: dict[str, int], wanted: int) -> None:
    files = {"proc/self/cgroup": V1_GROUP}
    for path, quota in quotas.items():
        files |= v1(f"sys/fs/cgroup/{folder}{path}", quota)
    assert _rt.quota_cpus(system(tmp_path, files)) == wanted


def test_periods_of_version_1(tmp_path: Path) -> None:
    files = v1("sys/fs/cgroup/cpu/user.slice/session", 50001, 25000)
    assert _rt.quota_cpus(system(tmp_path, files | {"proc/self/cgroup": V1_GROUP})) == 3


def mounts(top: str) -> dict[str, str]:
    return {
        "proc/self/mountinfo": "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        f"30 25 0:26 {top} /groups/memory rw shared:9 - cgroup cgroup rw,memory\n"
        f"31 25 0:27 {top} /groups/time rw,nosuid master:11 - cgroup cgroup rw,cpuacct,cpu\n"
        f"33 25 0:28 {top} /groups/v2 rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
    }


def test_where_the_system_says_that_they_are_mounted(tmp_path: Path) -> None:
    files = mounts("/") | v1("groups/time/user.slice/session", 200000) | {"proc/self/cgroup": V1_GROUP}
    assert _rt.quota_cpus(system(tmp_path, files)) == 2
    files = {"proc/self/cgroup": "0::/box\n", "groups/v2/box/cpu.max": "90000 100000\n"}
    assert _rt.quota_cpus(system(tmp_path, files)) == 1


@pytest.mark.parametrize(
    ("group", "folder"),
    [
        ("/docker/1234", ""),  # the container's own group is the top of what it sees
        ("/docker/1234/inner", "/inner"),
        ("/docker/12345", ""),  # another group, of which it sees nothing
        ("/../outside", ""),
    ],
)
def test_in_a_container(tmp_path: Path, group: str, folder: str) -> None:
    files = (
        mounts("/docker/1234") | v1(f"groups/time{folder}", 400000) | {"proc/self/cgroup": f"7:cpuacct,cpu:{group}\n"}
    )
    assert _rt.quota_cpus(system(tmp_path, files)) == 4


def test_a_mixture_of_both_versions(tmp_path: Path) -> None:
    files = V2_TREE | v1("sys/fs/cgroup/cpu/x", 200000) | {"proc/self/cgroup": "4:cpu:/x\n0::/a\n"}
    assert _rt.quota_cpus(system(tmp_path, files)) == 2


def test_no_quota_without_control_groups(tmp_path: Path) -> None:
    assert _rt.quota_cpus(str(tmp_path)) == 0
    assert _rt.quota_cpus(system(tmp_path, {"proc/self/cgroup": "0::/\nnonsense\n:\n"})) == 0
