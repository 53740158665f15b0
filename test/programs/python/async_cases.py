"""The same by asynchronous interfaces."""

from e2b import AsyncSandbox
from langchain_e2b import AsyncE2BSandbox


async def langchain_works_with_commands():
    async with await AsyncSandbox.create() as sandbox:
        backend = AsyncE2BSandbox(sandbox=sandbox)
        result = await backend.aexecute("echo $((6 * 7))")
        assert (result.output.strip(), result.exit_code) == ("42", 0), result
