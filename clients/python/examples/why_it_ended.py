"""Makes a sandbox, ends it, and reads from the stream of events what happened to it and why."""

from atoll_client import Atoll

platform = Atoll()
sandbox_id = platform.create_sandbox_v2(body={"templateID": "base", "timeout": 60})["sandboxID"]

for event in platform.stream_events(after=0):
    if event.get("sandboxId") != sandbox_id:
        continue
    print(event["type"], event["eventData"])
    if event["type"] == "sandbox.lifecycle.created":
        platform.delete_sandbox(sandbox_id)
    if event["type"] == "sandbox.lifecycle.killed":
        break
