"""A context: one kernel with its state, in which one piece of code runs at a time."""

import asyncio
import json
import uuid
from pathlib import Path
from queue import Empty

from jupyter_client.manager import AsyncKernelManager

import results

KEEPALIVE_SECONDS = 5
KERNEL_START_SECONDS = 60
# How long a message of the kernel is waited for before its process is looked at.
POLL_SECONDS = 1
# An interrupted kernel that does not stop is started anew.
INTERRUPT_SECONDS = 10

STARTUP = str(Path(__file__).with_name("kernel_startup.py"))

# How each language sets and unsets variables of its environment, without a trace in the user's own names.
ENVIRONMENT = {
    "python": lambda values: "import os as _os\n" + "\n".join(
        f"_os.environ[{json.dumps(name)}] = {json.dumps(value)}" if value is not None else f"_os.environ.pop({json.dumps(name)}, None)" for name, value in values.items()
    ) + "\ndel _os",
    "bash": lambda values: "\n".join(f"export {name}={_shell(value)}" if value is not None else f"unset {name}" for name, value in values.items()),
    "javascript": lambda values: "\n".join(
        f"process.env[{json.dumps(name)}] = {json.dumps(value)}" if value is not None else f"delete process.env[{json.dumps(name)}]" for name, value in values.items()
    ) + "\nundefined",
}


def _shell(value):
    return "'" + value.replace("'", "'\\''") + "'"


class Context:
    def __init__(self, language, kernel, cwd):
        self.id = str(uuid.uuid4())
        self.language = language
        self.cwd = cwd
        self.kernel = kernel
        self.lock = asyncio.Lock()
        self.restarts = 0
        self.environment = {}
        self.has_environment = False
        self.manager = None
        self.client = None

    async def start(self):
        self.manager = AsyncKernelManager(kernel_name=self.kernel)
        arguments = [f"--IPKernelApp.exec_files={json.dumps([STARTUP])}"] if self.language == "python" else []
        await self.manager.start_kernel(cwd=self.cwd, extra_arguments=arguments)
        self.client = self.manager.client()
        self.client.start_channels()
        await self.client.wait_for_ready(timeout=KERNEL_START_SECONDS)

    async def restart(self):
        self.restarts += 1
        self.has_environment = False
        await self.manager.restart_kernel(now=True)
        await self.client.wait_for_ready(timeout=KERNEL_START_SECONDS)

    async def stop(self):
        self.restarts += 1
        if self.client:
            self.client.stop_channels()
        if self.manager and self.manager.has_kernel:
            await self.manager.shutdown_kernel(now=True)

    def describe(self):
        return {"id": self.id, "language": self.language, "cwd": self.cwd}

    async def run(self, code, environment, load_environment):
        """Yields the lines of one execution. Who stops listening interrupts it."""
        async with self.lock:
            if not self.has_environment:
                self.environment = await load_environment()
                self.has_environment = True
                await self._set(self.environment)
            if environment:
                await self._set(environment)
            finished = False
            try:
                async for part in self._execute(code):
                    yield part
                finished = True
            finally:
                if not finished:
                    await self._interrupt()
                if environment:
                    await self._set({name: self.environment.get(name) for name in environment})

    async def _set(self, values):
        if not values or self.language not in ENVIRONMENT:
            return
        message = self.client.execute(ENVIRONMENT[self.language](values), silent=True, store_history=False)
        await self._until_idle(message)

    async def _interrupt(self):
        await self.manager.interrupt_kernel()
        message = self.client.execute("" if self.language == "python" else "true", silent=True, store_history=False)
        try:
            await asyncio.wait_for(self._until_idle(message), INTERRUPT_SECONDS)
        except asyncio.TimeoutError:
            await self.restart()

    async def _until_idle(self, message):
        while True:
            try:
                reply = await self.client.get_iopub_msg(timeout=POLL_SECONDS)
            except Empty:
                if not await self.manager.is_alive():
                    return
                continue
            if reply["parent_header"].get("msg_id") == message and reply["content"].get("execution_state") == "idle":
                return

    async def _execute(self, code):
        restarts = self.restarts
        message = self.client.execute(code, store_history=True, allow_stdin=False)
        quiet = 0.0
        while True:
            try:
                reply = await self.client.get_iopub_msg(timeout=POLL_SECONDS)
            except Empty:
                if self.restarts != restarts:
                    yield results.error("ContextRestarting", "The context was restarted while the code ran")
                    return
                if not await self.manager.is_alive():
                    yield results.error("UnexpectedEndOfExecution", "The kernel ended while the code ran: it may have used up the memory")
                    await self.restart()
                    return
                quiet += POLL_SECONDS
                if quiet >= KEEPALIVE_SECONDS:
                    quiet = 0.0
                    yield results.line("keepalive")
                continue
            if reply["parent_header"].get("msg_id") != message:
                continue
            quiet = 0.0
            kind, content = reply["msg_type"], reply["content"]
            if kind == "execute_input":
                yield results.line("number_of_executions", execution_count=content["execution_count"])
            elif kind == "stream":
                yield results.line(content["name"], text=content["text"], timestamp=reply["header"]["date"].isoformat())
            elif kind in ("display_data", "execute_result"):
                yield results.result(content, kind == "execute_result")
            elif kind == "error":
                yield results.error(content["ename"], content["evalue"], "\n".join(content["traceback"]))
            elif kind == "status" and content["execution_state"] == "idle":
                return
