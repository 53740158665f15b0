"""What a Python program does with a desktop, by the published client's synchronous interface. Each function is a test."""

import struct
import urllib.parse

from e2b_desktop import Sandbox

from waited import waited


def pictures_windows_keyboard_and_mouse():
    with Sandbox.create(resolution=(1024, 768), timeout=600) as desktop:
        empty = bytes(desktop.screenshot())
        assert empty[1:4] == b"PNG" and struct.unpack(">II", empty[16:24]) == (1024, 768), empty[:24]
        assert desktop.get_screen_size() == (1024, 768)
        desktop.launch("xfce4-terminal")
        window = waited("the window", lambda: desktop.get_application_windows("xfce4-terminal"))[0]
        waited("another picture", lambda: bytes(desktop.screenshot()) != empty)
        assert b"".join(desktop.screenshot(format="stream"))[1:4] == b"PNG"
        desktop.commands.run(f"xdotool windowactivate --sync {window}")
        assert "erminal" in desktop.get_window_title(desktop.get_current_window_id())
        desktop.write("echo $((6*7)) > /tmp/typed")
        desktop.press("enter")
        waited("the file", lambda: desktop.files.exists("/tmp/typed") and desktop.files.read("/tmp/typed") == "42\n")
        desktop.press(["ctrl", "c"])
        for move in (lambda: desktop.move_mouse(512, 384), lambda: desktop.left_click(512, 384), lambda: desktop.drag((100, 100), (512, 384))):
            move()
            assert desktop.get_cursor_position() == (512, 384)
        desktop.scroll("down", 2)
        desktop.double_click()
        desktop.right_click()
        desktop.middle_click()
        desktop.press("esc")


def files_are_opened():
    with Sandbox.create(timeout=600) as desktop:
        desktop.files.write("/home/user/note.txt", "text of a note")
        desktop.open("/home/user/note.txt")
        waited("the editor", lambda: desktop.commands.run("xdotool search --name note.txt").stdout.strip())


def stream():
    with Sandbox.create(timeout=600) as desktop:
        desktop.stream.start(require_auth=True)
        key = desktop.stream.get_auth_key()
        url = urllib.parse.urlsplit(desktop.stream.get_url(auth_key=key, view_only=True))
        assert url.hostname.startswith(f"6080-{desktop.sandbox_id}."), url
        query = urllib.parse.parse_qs(url.query)
        assert (query["password"], query["view_only"]) == ([key], ["true"]), query
        try:
            desktop.stream.start()
            raise AssertionError("a stream was started twice")
        except RuntimeError:
            pass
        desktop.stream.stop()
        desktop.stream.start(window_id=desktop.get_current_window_id())
        desktop.stream.stop()
