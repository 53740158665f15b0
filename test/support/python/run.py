"""Runs every case of both interfaces in the current folder and prints one JSON line for each: its name, and what went wrong or null."""

import asyncio
import inspect
import json
import os
import sys
import traceback

sys.path.insert(0, os.getcwd())

# What programs print goes to the error output: results have the other one to themselves.
results = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import async_cases  # noqa: E402
import sync_cases  # noqa: E402


def cases():
    for module in (sync_cases, async_cases):
        for name, function in vars(module).items():
            if inspect.isfunction(function) and function.__module__ == module.__name__:
                yield f"{module.__name__.removesuffix('_cases')}: {name}", function


for name, function in cases():
    problem = None
    try:
        asyncio.run(function()) if inspect.iscoroutinefunction(function) else function()
    except BaseException:
        problem = traceback.format_exc()
    print(json.dumps({"case": name, "problem": problem}), file=results, flush=True)
