"""The same by the SDK's asynchronous interface."""

import asyncio

from e2b import AsyncSandbox, AsyncVolume, CommandExitException


async def create_and_kill():
    sandbox = await AsyncSandbox.create(metadata={"suite": "python-async"})
    assert await sandbox.is_running()
    assert (await sandbox.get_info()).metadata == {"suite": "python-async"}
    assert await sandbox.kill() is True
    assert await sandbox.is_running() is False


async def commands():
    async with await AsyncSandbox.create() as sandbox:
        results = await asyncio.gather(*(sandbox.commands.run(f"echo {number}") for number in range(20)))
        assert [int(result.stdout) for result in results] == list(range(20))
        try:
            await sandbox.commands.run("exit 3")
            raise AssertionError("exit 3 did not raise")
        except CommandExitException as error:
            assert error.exit_code == 3


async def background_command():
    async with await AsyncSandbox.create() as sandbox:
        seen = []
        handle = await sandbox.commands.run("echo first; read line; echo got $line", background=True, stdin=True, on_stdout=seen.append)
        await sandbox.commands.send_stdin(handle.pid, "it\n")
        assert (await handle.wait()).stdout == "first\ngot it\n"
        assert "".join(seen) == "first\ngot it\n", seen


async def files():
    async with await AsyncSandbox.create() as sandbox:
        await sandbox.files.write("a.txt", "text")
        assert await sandbox.files.read("a.txt") == "text"
        assert await sandbox.files.exists("a.txt") is True
        assert "a.txt" in [entry.name for entry in await sandbox.files.list(".")]


async def volumes():
    volume = await AsyncVolume.create("python-async")
    assert (await volume.write_file("/file", b"bytes")).size == 5
    assert bytes(await volume.read_file("/file", format="bytes")) == b"bytes"
    assert [entry.name for entry in await volume.list("/")] == ["file"]
    assert await AsyncVolume.destroy(volume.volume_id) is True
