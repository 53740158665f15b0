"""Runs every case of both interfaces and prints one JSON line for each: its name, and what went wrong or null."""

import asyncio
import inspect
import json
import traceback

import async_cases
import sync_cases


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
    print(json.dumps({"case": name, "problem": problem}), flush=True)
