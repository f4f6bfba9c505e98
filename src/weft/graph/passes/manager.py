"""The pass manager for graphs: the context that passes are given, and the files that reproduce their crashes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, TypeAlias

from weft.cost import Choosing, Planner
from weft.graph.core.evaluator import Evaluator
from weft.graph.core.graph import Graph
from weft.graph.core.printer import print_graph
from weft.graph.core.saved_graph import load_graph, save_graph
from weft.graph.core.verify import verify_graph
from weft.support.errors import (
    CacheError,
    DeviceError,
    InputError,
    LoweringError,
    ModelError,
    RuntimeFailure,
    ScheduleError,
    ToolchainError,
)
from weft.support.knobs import Switches
from weft.support.passes import Language, Pass, PassManager, Report, adapted
from weft.targets import Target


@dataclass(frozen=True)
class GraphContext:
    """The machine that a graph is made fast for, the evaluator that computes its constants, and the caller's switches.

    Passes put their choices to the *planner*, and look at no facts of the machine themselves.
    """

    target: Target
    evaluator: Evaluator
    switches: Switches
    planner: Planner


GraphPass: TypeAlias = Pass[Graph, GraphContext]
GraphReport: TypeAlias = Report[Graph]


def with_planner(rewrite: Callable[..., Graph]) -> Callable[[Graph, GraphContext], Graph]:
    """Returns a rewrite that has choices in the form that `Pass` takes."""
    return adapted(rewrite, lambda context: (context.planner,))


def with_evaluator(rewrite: Callable[..., Graph]) -> Callable[[Graph, GraphContext], Graph]:
    """Returns a rewrite that computes constants in the form that `Pass` takes."""
    return adapted(rewrite, lambda context: (context.evaluator,))


@dataclass(frozen=True)
class SavedPass:
    """The content of a reproducer: a graph, the pass that crashed on it, the name of the target, and the switches."""

    graph: Graph
    name: str
    target: str
    switches: Switches

    @staticmethod
    def read(path: Path | str) -> SavedPass:
        """Reads a file of `save_reproducer`."""
        graph, facts = load_graph(Path(path))
        given = facts["switches"]
        switches = Switches(given["opt_level"], given["precision"], tuple(given["without"]), tuple(given["passes"]))
        return SavedPass(graph, facts["pass"], facts["target"], switches)


def save_reproducer(folder: Path, name: str, graph: Graph, context: GraphContext, switches: Switches) -> Path:
    """Writes *graph* with the names of the pass that failed on it and of the target, and the switches, to a file in *folder*."""
    path = folder / f"{name}.npz"
    plain = Switches(switches.opt_level, switches.precision, switches.without, switches.passes)
    save_graph(graph, path, {"pass": name, "target": context.target.name, "switches": asdict(plain)})
    return path


def reproduce_graph(path: Path | str, passes: Iterable[GraphPass], target: Target, evaluator: Evaluator) -> Graph:
    """Runs the pass named in a file of `save_reproducer` on the graph in it, and verifies the graph that it leaves.

    Raises the error of the pass, or `LoweringError` if *passes* has none of that name.
    """
    saved = SavedPass.read(path)
    context = GraphContext(target, evaluator, saved.switches, Choosing(target))
    return MANAGER.again(passes, saved.name, saved.graph, context, saved.switches, Path(path))


MANAGER: Final[PassManager[Graph, GraphContext]] = PassManager(
    Language("graph", verify_graph, print_graph, lambda graph: f"{len(graph.nodes):6} nodes"),
    save_reproducer,
    refusals=(
        CacheError,
        DeviceError,
        InputError,
        LoweringError,
        ModelError,
        RuntimeFailure,
        ScheduleError,
        ToolchainError,
    ),
)
