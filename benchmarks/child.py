"""Calls functions in processes of their own."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar
from unittest import mock

T = TypeVar("T")


def call(function: Callable[..., T], *arguments: object, **variables: str) -> T:
    """Return what a function of a module returns in a new process.

    `variables` are added to the environment, before the process imports anything.
    """
    spawned = multiprocessing.get_context("spawn")
    with mock.patch.dict(os.environ, variables), ProcessPoolExecutor(1, spawned) as process:
        return process.submit(function, *arguments).result()
