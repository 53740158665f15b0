"""The same by the client's asynchronous interface."""

import asyncio

from e2b import SandboxException, TimeoutException
from e2b_code_interpreter import AsyncSandbox
from e2b_code_interpreter.charts import LineChart


async def state_output_and_result():
    async with await AsyncSandbox.create() as sandbox:
        seen = []

        async def keep(message):
            seen.append(message.line)

        first = await sandbox.run_code("x = 40\nprint('out')\nx + 2", on_stdout=keep)
        assert (first.text, seen) == ("42", ["out\n"]), (first, seen)
        assert (await sandbox.run_code("1/0")).error.name == "ZeroDivisionError"
        assert (await sandbox.run_code("x")).text == "40"


async def charts():
    async with await AsyncSandbox.create() as sandbox:
        execution = await sandbox.run_code("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()")
        assert isinstance(execution.results[0].chart, LineChart) and execution.results[0].png


async def contexts_at_once():
    async with await AsyncSandbox.create() as sandbox:
        contexts = [await sandbox.create_code_context(cwd="/tmp") for _ in range(3)]
        cells = (sandbox.run_code(f"x = {number}; import os; f'{{x}} {{os.getcwd()}}'", context=each) for number, each in enumerate(contexts))
        assert [each.text for each in await asyncio.gather(*cells)] == ["0 /tmp", "1 /tmp", "2 /tmp"]
        assert {each.id for each in contexts} <= {each.id for each in await sandbox.list_code_contexts()}
        await sandbox.restart_code_context(contexts[0])
        assert (await sandbox.run_code("x", context=contexts[0])).error.name == "NameError"
        await sandbox.remove_code_context(contexts[0].id)
        assert (await sandbox.run_code("x", context=contexts[1])).text == "1"


async def output_comes_while_the_cell_runs():
    async with await AsyncSandbox.create() as sandbox:
        first = asyncio.Event()
        cell = asyncio.create_task(
            sandbox.run_code("import os, time\nprint('ready')\nwhile not os.path.exists('/tmp/go'): time.sleep(0.05)\n'went'", on_stdout=lambda _: first.set())
        )
        await asyncio.wait_for(first.wait(), 60)
        await sandbox.files.write("/tmp/go", "")
        assert (await cell).text == "went"


async def a_cell_whose_client_leaves_is_interrupted():
    async with await AsyncSandbox.create() as sandbox:
        try:
            await sandbox.run_code("import time\ntime.sleep(600)", timeout=1)
            raise AssertionError("a cell over its time did not raise")
        except TimeoutException:
            pass
        assert (await sandbox.run_code("'still here'")).text == "still here"


async def what_the_caller_has_wrong():
    async with await AsyncSandbox.create() as sandbox:
        try:
            await sandbox.create_code_context(language="cobol")
            raise AssertionError("an unknown language was taken")
        except SandboxException as error:
            assert "cobol is not supported" in str(error), error


async def java():
    async with await AsyncSandbox.create() as sandbox:
        lines = []
        execution = await sandbox.run_code(
            "for (int i = 0; i < 3; i++) System.out.println(i);\n6 * 7", language="java", on_stdout=lambda message: lines.append(message.line)
        )
        assert (execution.text, "".join(lines)) == ("42", "0\n1\n2\n"), execution
        assert (await sandbox.run_code("1 / 0", language="java")).error.name == "java.lang.ArithmeticException"


async def r():
    async with await AsyncSandbox.create() as sandbox:
        assert (await sandbox.run_code("6 * 7", language="r")).results[0].text == "[1] 42"
        assert (await sandbox.run_code("nowhere", language="r")).error.value.startswith("Error")
