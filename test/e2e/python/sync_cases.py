"""What a Python program does with sandboxes, by the published SDK's synchronous interface. Each function is a test."""

import httpx
from e2b import BuildException, CommandExitException, FileNotFoundException, NotFoundException, Sandbox, SandboxException, Template, TimeoutException, Volume, wait_for_port


def create_and_kill():
    sandbox = Sandbox.create(metadata={"suite": "python"}, timeout=120)
    assert sandbox.is_running()
    info = sandbox.get_info()
    assert info.sandbox_id == sandbox.sandbox_id and info.metadata == {"suite": "python"}, info
    assert sandbox.sandbox_id in [item.sandbox_id for item in Sandbox.list().next_items()]
    assert sandbox.kill() is True
    assert sandbox.is_running() is False
    assert sandbox.kill() is False


def commands():
    with Sandbox.create(envs={"COLOUR": "blue"}) as sandbox:
        result = sandbox.commands.run("echo out $COLOUR; echo err >&2")
        assert (result.stdout, result.stderr, result.exit_code) == ("out blue\n", "err\n", 0), result
        assert sandbox.commands.run("whoami; pwd").stdout == "user\n/home/user\n"
        assert sandbox.commands.run("whoami", user="root", cwd="/").stdout == "root\n"
        try:
            sandbox.commands.run("exit 7")
            raise AssertionError("exit 7 did not raise")
        except CommandExitException as error:
            assert error.exit_code == 7
        try:
            sandbox.commands.run("sleep 30", timeout=1)
            raise AssertionError("a command over its time did not raise")
        except TimeoutException:
            pass


def background_command():
    with Sandbox.create() as sandbox:
        handle = sandbox.commands.run("read line; echo got $line", background=True, stdin=True)
        assert handle.pid in [process.pid for process in sandbox.commands.list()]
        sandbox.commands.send_stdin(handle.pid, "it\n")
        assert handle.wait().stdout == "got it\n"
        sleeper = sandbox.commands.run("sleep 1000", background=True)
        assert sandbox.commands.kill(sleeper.pid) is True
        try:
            sleeper.wait()
            raise AssertionError("a killed command did not raise")
        except CommandExitException:
            pass
        assert sandbox.commands.kill(sleeper.pid) is False


def files():
    with Sandbox.create() as sandbox:
        assert sandbox.files.write("notes/a.txt", "grüße").path == "/home/user/notes/a.txt"
        assert sandbox.files.read("notes/a.txt") == "grüße"
        data = bytes(range(256)) * 1000
        sandbox.files.write("/tmp/data", data)
        assert bytes(sandbox.files.read("/tmp/data", format="bytes")) == data
        assert [entry.name for entry in sandbox.files.list("notes")] == ["a.txt"]
        assert sandbox.files.make_dir("box") is True and sandbox.files.make_dir("box") is False
        assert sandbox.files.rename("notes/a.txt", "box/b.txt").path == "/home/user/box/b.txt"
        info = sandbox.files.get_info("box/b.txt")
        assert (info.size, info.owner, info.permissions) == (7, "user", "-rw-r--r--"), info
        sandbox.files.remove("box")
        assert sandbox.files.exists("box") is False
        try:
            sandbox.files.read("none")
            raise AssertionError("a missing file did not raise")
        except (FileNotFoundException, NotFoundException):
            pass


def signed_urls_work_as_they_are():
    with Sandbox.create() as sandbox:
        sandbox.files.write("a.txt", "text")
        assert httpx.get(sandbox.download_url("a.txt")).text == "text"
        assert httpx.get(sandbox.download_url("a.txt", use_signature_expiration=60)).text == "text"
        assert httpx.post(sandbox.upload_url("b.txt"), files={"file": b"uploaded"}).status_code == 200
        assert sandbox.files.read("b.txt") == "uploaded"
        assert httpx.get(sandbox.download_url("a.txt").replace("a.txt", "b.txt")).status_code in (401, 404)
        assert sandbox.get_host(8000).startswith(f"8000-{sandbox.sandbox_id}.")
        assert sandbox.get_mcp_url().startswith(f"https://50005-{sandbox.sandbox_id}.")


def options_have_their_effect_or_are_refused_by_name():
    once = [Sandbox.create(timeout=120, idempotency_key="python-once") for _ in range(2)]
    assert once[0].sandbox_id == once[1].sandbox_id
    source = once[0]
    source.files.write("kept.txt", "kept")
    source.commands.run("sleep 987", background=True, timeout=0)
    running = "pgrep -cx sleep || true"
    for mode, left in [("full", "1\n"), ("filesystem", "0\n")]:
        with Sandbox.create(source.create_snapshot(mode=mode).snapshot_id, timeout=120) as child:
            assert (child.files.read("kept.txt"), child.commands.run(running).stdout) == ("kept", left), mode
    assert source.commands.run(running).stdout == "1\n"
    assert source.pause(strict=True)
    assert Sandbox.connect(source.sandbox_id).commands.run(running).stdout == "1\n"
    source.kill()
    for network, name in [
        ({"dns_servers": ["9.9.9.9"]}, "network.dnsServers"),
        ({"egress_proxy": {"address": "proxy.example:1080", "tls": True}}, "network.egressProxy.tls"),
    ]:
        try:
            Sandbox.create(network=network)
            raise AssertionError(f"{name} was taken")
        except SandboxException as error:
            assert name in str(error), error


def connect_and_timeout():
    sandbox = Sandbox.create(timeout=60)
    sandbox.set_timeout(300)
    again = Sandbox.connect(sandbox.sandbox_id)
    assert again.commands.run("echo here").stdout == "here\n"
    again.kill()
    try:
        Sandbox.connect(sandbox.sandbox_id)
        raise AssertionError("connecting to a killed sandbox did not raise")
    except (NotFoundException, SandboxException):
        pass


def volumes():
    volume = Volume.create("python")
    assert [(item.volume_id, item.name) for item in Volume.list()] == [(volume.volume_id, "python")]
    volume.make_dir("/a/b", force=True)
    assert volume.write_file("/a/file", "text", mode=0o640).mode == 0o640
    assert volume.read_file("/a/file") == "text"
    assert bytes(volume.read_file("/a/file", format="bytes")) == b"text"
    assert b"".join(volume.read_file("/a/file", format="stream")) == b"text"
    assert [entry.path for entry in volume.list("/", depth=2)] == ["/a", "/a/b", "/a/file"]
    assert volume.update_metadata("/a/file", uid=1000).uid == 1000
    with Sandbox.create(volume_mounts={"/data": volume}) as sandbox:
        assert sandbox.commands.run("cat /data/a/file; echo more > /data/more").stdout == "text"
    assert volume.read_file("/more") == "more\n"
    volume.remove("/a")
    assert volume.exists("/a") is False
    assert Volume.destroy(volume.volume_id) is True
    assert Volume.destroy(volume.volume_id) is False


def template():
    lines = []
    definition = (
        Template()
        .from_template("base")
        .set_envs({"GREETING": "hello"})
        .set_workdir("/srv/site")
        .run_cmd("echo $GREETING > index.html")
        .set_start_cmd("python3 -m http.server 8000", wait_for_port(8000))
    )
    Template.build(definition, "python-made", cpu_count=1, memory_mb=512, on_build_logs=lambda entry: lines.append(entry.message))
    assert any("RUN echo $GREETING" in line for line in lines), lines
    assert Template.exists("python-made")
    with Sandbox.create("python-made") as sandbox:
        assert sandbox.commands.run("curl -s localhost:8000/; pwd").stdout == "hello\n/srv/site\n"
    try:
        Template.build(Template().from_template("base").run_cmd("exit 4"), "python-fails")
        raise AssertionError("a failing build did not raise")
    except BuildException as error:
        assert "failed to run command 'exit 4': exit status 4" in str(error), error
