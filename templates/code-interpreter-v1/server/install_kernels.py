"""Tells Jupyter of the kernels that run in worker_kernel.py, and compiles the one of Java where there is a JDK."""

import json
import subprocess
import sys
from pathlib import Path

import languages

for language in languages.WORKERS:
    if language not in languages.offered():
        continue
    folder = Path(sys.prefix) / "share/jupyter/kernels" / language
    folder.mkdir(parents=True, exist_ok=True)
    argv = [sys.executable, str(languages.HERE / "worker_kernel.py"), "-f", "{connection_file}"]
    kernel = {"argv": argv, "display_name": language, "language": language, "env": {"ATOLL_KERNEL_LANGUAGE": language}}
    (folder / "kernel.json").write_text(json.dumps(kernel))

if "java" in languages.offered():
    java = languages.HERE / "java"
    subprocess.run(["javac", "-nowarn", "-d", str(java / "classes"), str(java / "Worker.java")], check=True)
