"""What all tests share: a cache of their own, and goldens, texts that a test compares with and `--update-goldens` writes."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from tests.runtime.devices.fake_driver import FakeDriver, forget_driver, use_fake_driver, use_host_compiler
from tests.support.processors import FIXED, empty_tables, keep_pretended, pretend_measured
from tests.support.sampling import mark_the_rest

from weft.targets import cpuinfo, listed_core

pytest_plugins = ["tests.support.cpu_times", "tests.support.real_networks"]

UNLISTED = "WEFT_TEST_UNLISTED_PROCESSOR"
"""Set to anything, this variable has all tests take the processor for one that no table has."""

LEVEL = "WEFT_TEST_LEVEL"
"""Set to avx2 or sse4, this variable has all tests, and the processes they start, take the processor for one of that level."""

settings.register_profile("any machine", deadline=None)  # none of its examples fails for taking long
settings.load_profile("any machine")

COLLECTED = pytest.StashKey[list[pytest.Item]]()
"""All tests of the collected modules, those that are then left out included."""

os.environ["WEFT_PACK_DIR"] = ""
"""No pack of records is used, here and in processes that tests start: no test depends on what was tuned on a machine."""

os.environ["WEFT_COMPILE_PROCESSES"] = "1"
"""Tests run on all processors already."""

if os.environ.get(LEVEL):
    import tests.support.level.sitecustomize

    os.environ["PYTHONPATH"] = str(Path(tests.support.level.sitecustomize.__file__).parent)

if os.environ.get(UNLISTED):
    as_listed = listed_core(cpuinfo())
    empty_tables(pytest.MonkeyPatch())
    pretend_measured(as_listed or FIXED)  # so that processes that tests start, which know the tables, compile the same
else:
    pretend_measured()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-goldens", action="store_true", help="write the golden texts instead of comparing")


def pytest_collection() -> None:
    """Has Python's collector of cycles wait until all tests are there: it took a fifth of the time to collect them."""
    gc.disable()


def pytest_itemcollected(item: pytest.Item) -> None:
    item.config.stash.setdefault(COLLECTED, []).append(item)


@pytest.hookimpl(tryfirst=True)  # before `-m` leaves out what is slow
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_the_rest(items)


def pytest_collection_finish() -> None:
    """Spares Python's collector the tests themselves and the modules that they import: it goes through them again and again."""
    gc.enable()
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Lets the interpreter free the modules at its end; libraries that find objects of theirs left over complain of leaks."""
    gc.unfreeze()


def golden_path(node: pytest.Item) -> Path:
    """Returns where the golden of a test is: `goldens/<module>/<test>.txt` beside the test's module."""
    name = node.name.removeprefix("test_").replace("[", "-").replace("]", "").replace("/", "-")
    return node.path.parent / "goldens" / node.path.stem.removeprefix("test_") / f"{name}.txt"


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of this run of the tests, the same for all processes that share it."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(autouse=True, scope="session")
def fresh_cache(run_folder: Path) -> Iterator[None]:
    """Begins with an empty cache, so that what is tested was compiled by the code that is tested."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WEFT_CACHE_DIR", str(run_folder / "weft-cache"))
        if sys.dont_write_bytecode:  # or each process that a test starts would compile all sources again
            patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
            patch.setenv("PYTHONPYCACHEPREFIX", str(run_folder / "bytecode"))
        keep_pretended()
        yield


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Gives a function that compares a text with the golden of the test; one golden a test."""
    path = golden_path(request.node)

    def check(text: str) -> None:
        __tracebackhide__ = True
        if request.config.getoption("--update-goldens"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif not path.exists():
            pytest.fail(f"there is no golden {path}; write it with --update-goldens")
        else:
            assert text == path.read_text(encoding="utf-8")

    return check


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    """The driver of CUDA that runs kernels' text on the processor, for one test."""
    use_host_compiler(monkeypatch)
    yield use_fake_driver(monkeypatch)
    monkeypatch.undo()
    forget_driver()
