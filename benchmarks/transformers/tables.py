"""A run as tables."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.report import duration, percent, ratio
from benchmarks.transformers.cell import DYNAMIC, EAGER, GROWING, SDPA, WAYS, Measured
from benchmarks.transformers.models import MODELS
from benchmarks.transformers.parts import CONCATENATION
from benchmarks.transformers.results import Results


def cells(results: Results, model: str) -> Iterator[str]:
    """Yield the table of times, ratios and memory of one model."""
    yield f"{MODELS[model].text}: one layer, {results.machine['dtype']}; time of a pass"
    names = "".join(f"{way.name:>15}" for way in WAYS)
    yield (
        f"  {'':<16}{names}{'eager/ours':>12}{'sdpa/ours':>12}{'eager/growing':>15}"
        f"{'sdpa/growing':>15}{'logits error':>14}"
    )
    for cell in results.cells(model):
        times = "".join(f"{_time(results.find(model, way, cell)):>15}" for way in WAYS)
        ratios = "".join(
            f"{ratio(results.ratio(model, theirs, ours, cell)):>{width}}"
            for ours, width in ((DYNAMIC, 12), (GROWING, 15))
            for theirs in (EAGER, SDPA)
        )
        yield f"  {cell.name:<16}{times}{ratios}{percent(results.logits_error(model, cell)):>14}"
    yield f"{MODELS[model].text}: memory at the peak of a pass, beside weights and caches"
    for cell in results.cells(model):
        peaks = "".join(f"{_size(results.find(model, way, cell)):>15}" for way in WAYS)
        yield f"  {cell.name:<16}{peaks}"


def parts(results: Results, model: str) -> Iterator[str]:
    """Yield where the time of a decode step of ours goes."""
    yield (
        f"{MODELS[model].text}: parts of a decode step; floor: reading the projections' weights"
        f" ({duration(results.reading_weights(model))}), and our ops"
    )
    for way in (DYNAMIC, GROWING):
        found = results.parts(model, way)
        if not found:
            continue
        columns = next(iter(found.values()))
        names = "".join(f"{name:>15}" for name in (*columns, "whole", "floor", "whole/floor"))
        yield f"  {way.name:<16}{names}"
        for cell, seconds in found.items():
            whole, floor = sum(seconds.values()), results.floor(model, seconds)
            times = "".join(f"{duration(value):>15}" for value in (*seconds.values(), whole, floor))
            yield f"    {cell.name:<14}{times}{ratio(whole / floor):>15}"
    yield from _concatenation(results, model)


def _concatenation(results: Results, model: str) -> Iterator[str]:
    dynamic, growing = results.parts(model, DYNAMIC), results.parts(model, GROWING)
    for cell in dynamic.keys() & growing.keys():
        if cell == max(dynamic):
            cost = duration(dynamic[cell][CONCATENATION])
            slower = ratio(results.ratio(model, DYNAMIC, GROWING, cell))
            yield (
                f"  {cell.name}: DynamicCache concatenates for {cost} a step; with it a step takes"
                f" {slower} as long as with GrowingCache"
            )


def _time(measured: Measured | None) -> str:
    return "-" if measured is None else measured.left_out or duration(measured.seconds)


def _size(measured: Measured | None) -> str:
    if measured is None or measured.peak is None:
        return "-"
    return f"{measured.peak / 2**20:,.1f} MiB"
