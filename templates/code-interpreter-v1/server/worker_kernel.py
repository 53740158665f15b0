"""A Jupyter kernel around a program that runs cells and keeps their state (javascript/worker.cjs, java/Worker.java).

The program is given two descriptors. It reads a line for each cell, `<code> <marker>`, both in base64; writes the marker to
its standard output and error when the cell has ended; and answers one line of JSON: `data` by MIME type, `error` with `name`,
`message` and `stack`, or neither.
"""

import base64
import codecs
import json
import os
import select
import signal
import subprocess
import sys
import threading

from ipykernel.kernelapp import IPKernelApp
from ipykernel.kernelbase import Kernel

import languages

# How long the beginning of a line is held back for its end.
LINE_SECONDS = 0.2
# A longer line is sent in parts.
LINE_BYTES_MAX = 64 << 10


class WorkerKernel(Kernel):
    implementation = "worker"
    implementation_version = "1.0"
    language = os.environ["ATOLL_KERNEL_LANGUAGE"]
    banner = language
    language_info = {"name": language, "mimetype": "text/plain", "file_extension": f".{language}"}

    def __init__(self, **options):
        super().__init__(**options)
        self._start()

    # An interrupt is for the code: without these, ipykernel would raise KeyboardInterrupt here, in the middle of an answer.
    def pre_handler_hook(self):
        pass

    def post_handler_hook(self):
        pass

    def _start(self):
        requests, self_requests = os.pipe()
        self_replies, replies = os.pipe()
        # Requests and replies have pipes of their own: the program's streams belong to the user's code.
        self.worker = subprocess.Popen(
            [*languages.WORKERS[self.language], str(requests), str(replies)],
            pass_fds=(requests, replies), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        os.close(requests)
        os.close(replies)
        self.requests = os.fdopen(self_requests, "w", encoding="ascii")
        self.replies = os.fdopen(self_replies, "r", encoding="utf-8")

    def _forward(self, stream, name, marker):
        """Sends what the code prints, by lines, until the marker that ends the cell."""
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        rest = b""

        def send(size):
            nonlocal rest
            text = decode(rest[:size])
            rest = rest[size:]
            if text:
                self.send_response(self.iopub_socket, "stream", {"name": name, "text": text})

        while True:
            if not select.select([stream], [], [], LINE_SECONDS if rest else None)[0]:
                beginning = rest.rfind(marker[:1])
                send(len(rest) if beginning < 0 else beginning)
                # The beginning of a marker, or a character of the code's own: more bytes tell.
                if rest:
                    select.select([stream], [], [])
                continue
            part = os.read(stream.fileno(), LINE_BYTES_MAX)
            rest += part
            at = rest.find(marker)
            if at >= 0 or not part:
                return send(at if at >= 0 else len(rest))
            send(len(rest) - len(marker) if len(rest) > LINE_BYTES_MAX else rest.rfind(b"\n") + 1)

    def do_execute(self, code, silent, store_history=True, user_expressions=None, allow_stdin=False, **_):
        marker = b"\0" + os.urandom(8).hex().encode() + b"\0"
        try:
            self.requests.write(" ".join(base64.b64encode(part).decode() for part in (code.encode(), marker)) + "\n")
            self.requests.flush()
        except BrokenPipeError:
            return self._died()
        errors = threading.Thread(target=self._forward, args=(self.worker.stderr, "stderr", marker))
        errors.start()
        self._forward(self.worker.stdout, "stdout", marker)
        errors.join()
        text = self.replies.readline()
        if not text:
            return self._died()
        reply = json.loads(text)
        if reply.get("error"):
            return self._failed(reply["error"])
        if reply.get("data") and not silent:
            self.send_response(self.iopub_socket, "execute_result", {"execution_count": self.execution_count, "data": reply["data"], "metadata": {}})
        return {"status": "ok", "execution_count": self.execution_count, "payload": [], "user_expressions": {}}

    def _died(self):
        self.worker.kill()
        self.worker.wait()
        self._start()
        return self._failed({"name": "UnexpectedEndOfExecution", "message": "The process that runs the code ended; its state is lost", "stack": ""})

    def _failed(self, error):
        content = {"ename": error["name"], "evalue": error["message"], "traceback": [error["stack"]]}
        self.send_response(self.iopub_socket, "error", content)
        return {"status": "error", "execution_count": self.execution_count, **content}

    def do_shutdown(self, restart):
        self.worker.kill()
        return {"status": "ok", "restart": restart}


if __name__ == "__main__":
    # The whole group is interrupted, the program included.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    IPKernelApp.launch_instance(kernel_class=WorkerKernel, argv=sys.argv[1:])
