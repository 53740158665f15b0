"""The languages: how their kernels are started, and how each sets its variables of the environment."""

import json
import shutil
from pathlib import Path

HERE = Path(__file__).resolve().parent

# Kernels by language, as Jupyter knows them. Those that are not installed are not offered.
KERNELS = {"python": "python3", "javascript": "javascript", "bash": "bash", "r": "ir", "java": "java"}
ALIASES = {"js": "javascript", "ts": "javascript", "typescript": "javascript", "py": "python", "sh": "bash"}

# Programs that run cells, for worker_kernel.py.
WORKERS = {
    "javascript": ["node", "--no-warnings", str(HERE / "javascript/worker.cjs")],
    "java": ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-cp", str(HERE / "java/classes"), "Worker"],
}

# What a language needs beside what every build of the template has.
_PROGRAMS = {"r": "R", "java": "javac"}


def offered():
    return [language for language in KERNELS if language not in _PROGRAMS or shutil.which(_PROGRAMS[language])]


def named(name):
    """The language of a name or an alias; None where there is no such language here."""
    language = str(name or "python").strip().lower()
    language = ALIASES.get(language, language)
    return language if language in offered() else None


def _python(values):
    lines = [f"_os.environ[{json.dumps(name)}] = {json.dumps(value)}" if value is not None else f"_os.environ.pop({json.dumps(name)}, None)" for name, value in values.items()]
    return "\n".join(["import os as _os", *lines, "del _os"])


def _bash(values):
    return "\n".join(f"export {name}={_quoted(value)}" if value is not None else f"unset {name}" for name, value in values.items())


def _javascript(values):
    lines = [f"process.env[{json.dumps(name)}] = {json.dumps(value)};" if value is not None else f"delete process.env[{json.dumps(name)}];" for name, value in values.items()]
    return "\n".join([*lines, "undefined"])


def _r(values):
    # Names by their text: what is no name in R is one of the environment.
    return "\n".join(
        f"do.call(Sys.setenv, setNames(list({json.dumps(value)}), {json.dumps(name)}))" if value is not None else f"Sys.unsetenv({json.dumps(name)})" for name, value in values.items()
    )


def _java(values):
    # A JVM can't change its environment: as in the published template, they are properties.
    return "\n".join(f"System.setProperty({json.dumps(name)}, {json.dumps(value)});" if value is not None else f"System.clearProperty({json.dumps(name)});" for name, value in values.items())


def _quoted(value):
    return "'" + value.replace("'", "'\\''") + "'"


# Code that sets variables, and unsets those that are None, without a trace in the user's own names.
ENVIRONMENT = {"python": _python, "bash": _bash, "javascript": _javascript, "r": _r, "java": _java}

# Code that does nothing.
NOTHING = {"python": "", "bash": "true", "javascript": "undefined", "r": "invisible()", "java": ""}
