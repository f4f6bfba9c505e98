"""Tables of the benchmark's results."""

from statistics import geometric_mean
from typing import Any

Result = dict[str, Any]
NARROWEST = 11

TABLES = [
    ("ms", "{:.4g}", "median ms"),
    ("ratio", "{:.2f}", "ratio to onnxruntime (lower is faster; ! = outputs disagree)"),
    ("best_ratio", "{:.2f}", "ratio to the better of onnxruntime and openvino, round by round"),
    ("best_cpu_ratio", "{:.2f}", "the same in CPU time"),
    ("gflops", "{:.1f}", "GFLOP/s"),
    ("min_ms", "{:.4g}", "fastest run, ms"),
    ("cpu_ms", "{:.4g}", "CPU ms a run"),
    ("cpu_ratio", "{:.2f}", "CPU time, ratio to onnxruntime"),
    ("cpu_gflops", "{:.1f}", "GFLOP a CPU second"),
    ("compile_s", "{:.2f}", "seconds to load and compile"),
    ("rss_mb", "{:.0f}", "peak memory, MiB (largest process)"),
    ("cpu", "{:.2f}", "CPU seconds a second of wall time while timed"),
    ("max_rel", "{:.1e}", "largest absolute error over largest reference value"),
]


def report(results: list[Result]) -> str:
    """Return all tables and the summary as text."""
    tables = [f"== {title}\n{table(results, key, form)}\n" for key, form, title in TABLES]
    return "\n".join([*tables, summary(results)])


def table(results: list[Result], key: str, form: str) -> str:
    """Return one figure as a table, a row a model and thread count, a column an engine."""
    engines = list(dict.fromkeys(engine for result in results for engine in result["engines"]))
    labels = [f"{result['model']} t{result['threads']}" for result in results]
    left = max(map(len, labels)) + 1
    widths = {engine: max(NARROWEST, len(engine) + 2) for engine in engines}
    lines = ["".ljust(left) + "GFLOP".rjust(9) + "".join(engine.rjust(widths[engine]) for engine in engines)]
    for label, result in zip(labels, results, strict=True):
        cells = (cell(result["engines"].get(engine), key, form).rjust(widths[engine]) for engine in engines)
        lines.append(f"{label.ljust(left)}{result['flops'] / 1e9:9.4f}{''.join(cells)}")
    return "\n".join(lines)


def cell(figures: Result | None, key: str, form: str) -> str:
    if figures is None:
        return "-"
    if figures.get(key) is None:
        return "fail"
    return form.format(figures[key]) + ("" if figures.get("ok", True) else "!")


def summary(results: list[Result]) -> str:
    """Return the geometric means of the ratios to the better runtime, a line for each thread count and engine."""
    lines = []
    for threads in sorted({result["threads"] for result in results}):
        rows = [result["engines"] for result in results if result["threads"] == threads]
        for engine in dict.fromkeys(engine for row in rows for engine in row):
            figures = [row[engine] for row in rows if "best_ratio" in row.get(engine, {})]
            if figures:
                lines.append(f"threads {threads} {engine}: {summary_of(figures)}")
    return "\n".join(lines)


def summary_of(figures: list[Result]) -> str:
    wall, cpu = (geometric_mean([figure[key] for figure in figures]) for key in ("best_ratio", "best_cpu_ratio"))
    worst = max(figure["best_cpu_ratio"] for figure in figures)
    disagree = sum(not figure.get("ok", True) for figure in figures)
    means = f"geometric means best_ratio {wall:.3f}, best_cpu_ratio {cpu:.3f}, worst {worst:.2f}"
    return f"{len(figures)} models, {means}, disagree {disagree}"
