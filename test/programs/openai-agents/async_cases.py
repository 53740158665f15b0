"""The sandboxes of OpenAI's agents, as PyPI has them, with the clients that they pin. Each function is a test."""

import io
from pathlib import Path

from agents.extensions.sandbox.e2b import E2BSandboxClient, E2BSandboxClientOptions
from agents.sandbox import Manifest


async def works_with_commands_files_terminals_and_pauses(persistence="tar"):
    client = E2BSandboxClient()
    options = E2BSandboxClientOptions(
        "e2b", envs={"GIVEN": "yes"}, pause_on_exit=True, exposed_ports=(8000,), workspace_persistence=persistence
    )
    session = await client.create(manifest=Manifest(), options=options)
    await session.start()
    ended = await session.exec("echo out $GIVEN; echo err >&2; exit 3")
    assert (ended.exit_code, ended.stdout, ended.stderr) == (3, b"out yes\n", b"err\n"), ended
    await session.write(Path("notes/a.txt"), io.BytesIO(b"one\n"))
    assert [entry.path.endswith("notes") for entry in await session.ls(Path("."))] == [True]
    assert session.state.sandbox_id in (await session.resolve_exposed_port(8000)).host
    terminal = await session.pty_exec_start("cat", tty=True)
    update = await session.pty_write_stdin(session_id=terminal.process_id, chars="typed\n")
    assert b"typed" in update.output, update
    await session.stop()
    await session.shutdown()
    resumed = await client.resume(session.state)
    try:
        await resumed.start()
        assert (await resumed.read(Path("notes/a.txt"))).read() == b"one\n" and await resumed.running()
    finally:
        await resumed._inner._sandbox.kill()


async def keeps_its_workspace_by_snapshots():
    await works_with_commands_files_terminals_and_pauses("snapshot")
