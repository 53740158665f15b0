"""Frameworks of PyPI that run what an agent writes in sandboxes, as they are published. Each function is a test."""

from deepagents.backends.protocol import FileUploadResponse
from e2b import Sandbox
from langchain_e2b import E2BSandbox
from smolagents.monitoring import AgentLogger
from smolagents.remote_executors import E2BExecutor
from smolagents.utils import AgentError


def smolagents_runs_code_and_keeps_its_state():
    executor = E2BExecutor(["cowsay"], AgentLogger())
    try:
        executor.send_variables({"numbers": [1, 2, 3]})
        output = executor("import cowsay\nprint('seen')\ntotal = sum(numbers)\ntotal")
        assert (str(output.output), output.logs.strip(), output.is_final_answer) == ("6", "seen", False), output
        assert str(executor("total + 1").output) == "7"
        try:
            executor("1 / 0")
            raise AssertionError("an error of the code was not raised")
        except AgentError as error:
            assert "ZeroDivisionError" in str(error), error
    finally:
        executor.cleanup()


def langchain_works_with_files_and_commands():
    with Sandbox.create() as sandbox:
        backend = E2BSandbox(sandbox=sandbox)
        assert backend.id == sandbox.sandbox_id
        result = backend.execute("echo out; echo err >&2; exit 3")
        assert (result.output, result.exit_code) == ("out\n\nerr\n", 3), result
        uploaded: list[FileUploadResponse] = backend.upload_files([("/home/user/notes/a.txt", b"one\ntwo\n")])
        assert [each.error for each in uploaded] == [None], uploaded
        assert "two" in str(backend.read("/home/user/notes/a.txt"))
        backend.edit("/home/user/notes/a.txt", "two", "three")
        assert [each.content for each in backend.download_files(["/home/user/notes/a.txt"])] == [b"one\nthree\n"]
        assert "a.txt" in str(backend.ls("/home/user/notes")) and "a.txt" in str(backend.grep("three", "/home/user/notes"))
