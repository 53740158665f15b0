"""What kernels say, in the form that clients read: one JSON object a line."""

import json

# By MIME type of the kernel's messages.
MEMBERS = {
    "text/plain": "text",
    "text/html": "html",
    "text/markdown": "markdown",
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpeg",
    "application/pdf": "pdf",
    "text/latex": "latex",
    "application/json": "json",
    "application/javascript": "javascript",
    "e2b/data": "data",
    "e2b/chart": "chart",
}


def line(kind, **members):
    """One line; members that are None are left out. ASCII alone: clients decode chunk by chunk."""
    message = {"type": kind, **{name: value for name, value in members.items() if value is not None}}
    return (json.dumps(message, ensure_ascii=True, default=str) + "\n").encode()


def result(content, is_main):
    members = {}
    extra = {}
    for mime, value in content.get("data", {}).items():
        name = MEMBERS.get(mime)
        if name is None:
            extra[mime] = value
        elif name == "text":
            members["text"] = unquoted(value)
        elif name in ("png", "jpeg", "pdf"):
            members[name] = value.replace("\n", "")
        else:
            members[name] = value
    return line("result", **members, extra=extra or None, is_main_result=is_main)


def unquoted(text):
    """A string's representation without its quotes."""
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return text


def error(name, value, traceback=""):
    return line("error", name=name, value=value, traceback=traceback)
