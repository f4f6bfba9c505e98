"""Models as functions: recursion, closures and functions as values, in text, made a graph by partial evaluation.

    graph = inline_functions(parse_functions(text), weights={"w": array})
"""

from weft.graph.functions.inliner import inline_functions
from weft.graph.functions.lambda_lifting import lift_lambdas
from weft.graph.functions.parser import parse_functions
from weft.graph.functions.printer import print_functions

__all__ = ["inline_functions", "lift_lambdas", "parse_functions", "print_functions"]
