"""Tells Jupyter where the JavaScript kernel is."""

import json
import sys
from pathlib import Path

here = Path(__file__).parent
folder = Path(sys.prefix) / "share/jupyter/kernels/javascript"
folder.mkdir(parents=True, exist_ok=True)
argv = [sys.executable, str(here.resolve() / "javascript_kernel.py"), "-f", "{connection_file}"]
(folder / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "JavaScript", "language": "javascript"}))
