"""A context: one kernel with its state, in which one piece of code runs at a time."""

import asyncio
import json
import os
import uuid
from pathlib import Path
from queue import Empty

from jupyter_client.manager import AsyncKernelManager

import languages
import results

KERNEL_START_SECONDS = 60
# Seconds to wait for a message of the kernel before its process is looked at.
POLL_SECONDS = 1
# Seconds after which an interrupted kernel that does not stop is started anew.
INTERRUPT_SECONDS = 10

STARTUP = str(Path(__file__).with_name("kernel_startup.py"))


class Context:
    def __init__(self, language, cwd):
        self.id = str(uuid.uuid4())
        self.language = language
        self.cwd = cwd
        self.lock = asyncio.Lock()
        self.restarts = 0
        self.environment = {}
        self.has_environment = False
        # The code asked its kernel to end, which it does a moment after the execution has.
        self.is_leaving = False
        self.manager = None
        self.client = None

    async def start(self):
        self.manager = AsyncKernelManager(kernel_name=languages.KERNELS[self.language])
        arguments = [f"--IPKernelApp.exec_files={json.dumps([STARTUP])}"] if self.language == "python" else []
        await self.manager.start_kernel(cwd=self.cwd, extra_arguments=arguments)
        self.client = self.manager.client()
        self.client.start_channels()
        await self.client.wait_for_ready(timeout=KERNEL_START_SECONDS)

    async def restart(self):
        self.restarts += 1
        self.has_environment = False
        self.is_leaving = False
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
                if self.is_leaving:
                    await self.restart()
            finally:
                if not finished:
                    await self._interrupt()
                if environment:
                    await self._set({name: self._value_before(name) for name in environment})

    def _value_before(self, name):
        """What a variable was before one execution had its own: the sandbox's, or what the kernel was started with."""
        return self.environment.get(name, os.environ.get(name))

    async def _set(self, values):
        if not values:
            return
        message = self.client.execute(languages.ENVIRONMENT[self.language](values), silent=True, store_history=False)
        await self._until_idle(message)

    async def _interrupt(self):
        await self.manager.interrupt_kernel()
        message = self.client.execute(languages.NOTHING[self.language], silent=True, store_history=False)
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
                continue
            if reply["parent_header"].get("msg_id") != message:
                continue
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
                self.is_leaving = await self._asks_to_end(message)
                return

    async def _asks_to_end(self, message):
        """Whether the code ended its kernel by `exit()`, `quit()` or the like: the reply to the execution says so."""
        while True:
            try:
                reply = await self.client.get_shell_msg(timeout=POLL_SECONDS)
            except Empty:
                return False
            if reply["parent_header"].get("msg_id") == message:
                return any(part.get("source") == "ask_exit" for part in reply["content"].get("payload") or [])
