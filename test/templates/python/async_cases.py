"""PyPI's desktop has no asynchronous interface: a program of that kind runs it in a thread."""

import asyncio

from e2b_desktop import Sandbox


async def in_a_thread():
    desktop = await asyncio.to_thread(Sandbox.create, timeout=600)
    try:
        pictures = await asyncio.gather(*(asyncio.to_thread(desktop.screenshot) for _ in range(3)))
        assert [bytes(picture)[1:4] for picture in pictures] == [b"PNG"] * 3
    finally:
        await asyncio.to_thread(desktop.kill)
