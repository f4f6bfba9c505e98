"""The checks of the machine by `weft doctor`, one a function."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

from weft.cli.console import human_bytes
from weft.cli.doctor.findings import Check, Finding, State, read
from weft.native import _rt
from weft.runtime.host import machine
from weft.targets import LEVELS, cache_sizes, can_run, cpu, host, host_flags

TOLD = ("avx512_vnni", "avx512_bf16", "avx512_fp16", "avx_vnni", "amx_bf16", "amx_int8")
"""Features that are worth telling: each has instructions of its own for a smaller data type."""

NAMES = {"avx512": "AVX-512", "avx2": "AVX2", "sse4": "SSE 4.2"}

FOREIGN = "run them on an x86-64 Linux machine with SSE 4.2 or more"


def processor(root: Path) -> Finding:
    """Which processor it is, and whether Weft's code runs on it."""
    name = re.search(r"^model name\s*: *(.+)$", read(root, "proc/cpuinfo") or "", re.MULTILINE)
    told = f"{name[1] if name else 'unknown'}, {machine()}, {platform.system()} {platform.release()}"
    if machine() != "x86_64" or platform.system() != "Linux":
        return Finding("processor", State.PROBLEM, f"{told}: it can't run models yet, only compile them", FOREIGN)
    return Finding("processor", State.OK, told)


def vectors(_: Path) -> Finding:
    """How wide its vectors are."""
    target = host()
    level = next((name for name in LEVELS if can_run(cpu(name))), None)
    if level is None:
        return Finding(
            "vectors", State.PROBLEM, "no SSE 4.2, which all code needs: models can be compiled here, not run", FOREIGN
        )
    more = [name.upper().replace("_", " ").replace("AVX512", "AVX-512") for name in TOLD if name in host_flags()]
    told = f"{NAMES[level]}, {target.isa.vector_bits} bits{', ' if more else ''}{', '.join(more)}"
    if level == "sse4":
        todo = "if this is a virtual machine, let it see its host's processor (CPU type `host`)"
        return Finding("vectors", State.ADVICE, f"{told}: no AVX2, which makes models several times as fast", todo)
    return Finding("vectors", State.OK, told)


def caches(_: Path) -> Finding:
    """The sizes of its caches, to which kernels are cut."""
    target, known = host(), cache_sizes()
    used = enumerate((target.caches.l1, target.caches.l2, target.caches.l3), 1)
    told = ", ".join([f"L{n} {_cache_text(size, known.get(n, size))}" for n, size in used])
    if not known:
        todo = "mount /sys where Weft runs, so that kernels fit the caches that there are"
        return Finding("caches", State.ADVICE, f"the system does not tell them; taken for {told}", todo)
    return Finding("caches", State.OK, told)


def _cache_text(used: int, there: int) -> str:
    """Returns the size of a cache; of a large one that many cores share, also the part that kernels are cut to."""
    size, whole = (human_bytes(n).replace(".0 ", " ") for n in (used, there))
    return whole if used >= there else f"{whole}, of which kernels are cut to {size}"


def cores(root: Path) -> Finding:
    """How many processors a model may use, and the limits on them."""
    there, allowed = os.cpu_count() or 1, len(os.sched_getaffinity(0))
    quota = _rt.quota_cpus(str(root))
    used = min(allowed, quota or allowed)
    siblings = read(root, "sys/devices/system/cpu/cpu0/topology/thread_siblings_list") or "0"
    shared = len(re.findall(r"\d+", siblings)) > 1
    told = f"{used} of {there}{' (two share a core)' if shared else ''}"
    if quota and quota < allowed:
        todo = "raise the quota of the container, or say --threads with what it may use"
        return Finding("cores", State.ADVICE, f"{told}: a quota of {quota} holds this process back", todo)
    if allowed < there:
        return Finding(
            "cores", State.ADVICE, f"{told}: this process is bound to some", "taskset -c, if it should not be"
        )
    return Finding("cores", State.OK, told)


def load(root: Path) -> Finding:
    """Whether others are at work, too."""
    busy = float((read(root, "proc/loadavg") or "0").split()[0])
    count = len(os.sched_getaffinity(0))
    told = f"a load average of {busy:.1f} over the last minute, on {count} processor{'s' if count > 1 else ''}"
    if busy > count / 2:
        return Finding("load", State.ADVICE, told, "times that are measured now are worth little; stop what else runs")
    return Finding("load", State.OK, told)


def memory(root: Path) -> Finding:
    """How much memory there is, and how much of it a process may use."""
    facts = {
        name: int(kb) << 10
        for name, kb in re.findall(r"^(\w+):\s*(\d+) kB", read(root, "proc/meminfo") or "", re.MULTILINE)
    }
    if "MemTotal" not in facts:
        return Finding("memory", State.OK, "the system does not tell")
    free, total = facts.get("MemAvailable", facts["MemTotal"]), facts["MemTotal"]
    told = f"{human_bytes(free)} free of {human_bytes(total)}"
    limit = read(root, "sys/fs/cgroup/memory.max") or ""
    told += f", at most {human_bytes(int(limit))} for this process" if limit.isdigit() and int(limit) < total else ""
    if free < 1 << 30:
        return Finding(
            "memory", State.ADVICE, told, "stop what else runs: a model of some size needs more to be compiled"
        )
    return Finding("memory", State.OK, told)


def huge_pages(root: Path) -> Finding:
    """Whether weights can be kept in pages of 2 MiB."""
    mode = re.search(r"\[(\w+)\]", read(root, "sys/kernel/mm/transparent_hugepage/enabled") or "")
    if mode is None:
        return Finding("huge pages", State.ADVICE, "the system has none: large weights are read up to 40% slower")
    if mode[1] == "never":
        todo = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"
        return Finding("huge pages", State.ADVICE, "switched off: large weights are read up to 40% slower", todo)
    return Finding("huge pages", State.OK, mode[1])


def clock(root: Path) -> Finding:
    """Whether the processor runs at the same speed all the time."""
    mode = read(root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    if mode == "powersave" and read(root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_driver") != "intel_pstate":
        todo = "sudo cpupower frequency-set -g performance"
        return Finding("clock", State.ADVICE, "powersave: the processor stays slow", todo)
    return Finding("clock", State.OK, mode or "the system does not tell (a virtual machine)")


MACHINE: tuple[Check, ...] = (processor, vectors, caches, cores, load, memory, huge_pages, clock)
