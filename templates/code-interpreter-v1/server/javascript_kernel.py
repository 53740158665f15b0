"""A Jupyter kernel for JavaScript: the code runs in a Node.js process that keeps its state (javascript_worker.cjs)."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from ipykernel.kernelapp import IPKernelApp
from ipykernel.kernelbase import Kernel

WORKER = str(Path(__file__).with_name("javascript_worker.cjs"))


class JavaScriptKernel(Kernel):
    implementation = "javascript"
    implementation_version = "1.0"
    banner = "JavaScript"
    language_info = {"name": "javascript", "mimetype": "application/javascript", "file_extension": ".js"}

    def __init__(self, **options):
        super().__init__(**options)
        self._start()

    def _start(self):
        code_read, code_write = os.pipe()
        reply_read, reply_write = os.pipe()
        # The code and the replies have pipes of their own: the program's streams belong to the user's code.
        self.worker = subprocess.Popen(
            ["node", "--experimental-vm-modules", "--no-warnings", WORKER, str(code_read), str(reply_write)],
            pass_fds=(code_read, reply_write), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        os.close(code_read)
        os.close(reply_write)
        self.code = os.fdopen(code_write, "w", encoding="utf-8")
        self.replies = os.fdopen(reply_read, "r", encoding="utf-8")

    def _forward(self, stream, name, marker):
        """Sends what the code prints until the marker that ends the execution."""
        rest = b""
        while True:
            part = os.read(stream.fileno(), 65536)
            if not part:
                break
            rest += part
            at = rest.find(marker)
            ready = rest[:at] if at >= 0 else rest[: max(0, len(rest) - len(marker))]
            if ready:
                self.send_response(self.iopub_socket, "stream", {"name": name, "text": ready.decode("utf-8", "replace")})
            if at >= 0:
                return
            rest = rest[len(ready):]

    def do_execute(self, code, silent, store_history=True, user_expressions=None, allow_stdin=False, **_):
        marker = f"\x00{os.urandom(8).hex()}\x00"
        self.code.write(json.dumps({"code": code, "marker": marker}) + "\n")
        self.code.flush()
        errors = threading.Thread(target=self._forward, args=(self.worker.stderr, "stderr", marker.encode()))
        errors.start()
        self._forward(self.worker.stdout, "stdout", marker.encode())
        errors.join()
        text = self.replies.readline()
        if not text:
            self.worker.wait()
            self._start()
            return self._failed({"name": "KernelDied", "message": "the JavaScript process ended", "stack": []})
        reply = json.loads(text)
        if reply.get("error"):
            return self._failed(reply["error"])
        if reply.get("data") and not silent:
            self.send_response(self.iopub_socket, "execute_result", {"execution_count": self.execution_count, "data": reply["data"], "metadata": {}})
        return {"status": "ok", "execution_count": self.execution_count, "payload": [], "user_expressions": {}}

    def _failed(self, error):
        content = {"ename": error["name"], "evalue": error["message"], "traceback": error["stack"]}
        self.send_response(self.iopub_socket, "error", content)
        return {"status": "error", "execution_count": self.execution_count, **content}

    def do_shutdown(self, restart):
        self.worker.kill()
        return {"status": "ok", "restart": restart}


if __name__ == "__main__":
    # An interrupt is for the code, which runs in the other process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    IPKernelApp.launch_instance(kernel_class=JavaScriptKernel, argv=sys.argv[1:])
