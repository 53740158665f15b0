"""How the operations are asked: credentials, retries, time limits, streams."""

from __future__ import annotations

import http.client
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from typing import IO, Any, Dict, Iterator, Mapping, Optional, Union

Bytes = Union[bytes, IO[bytes]]

RETRY_DELAY_SECONDS = 0.5
RETRY_AFTER_MAX_SECONDS = 30.0
"""No longer than this is waited because the platform says so."""
STREAM_IDLE_SECONDS = 60.0
"""A stream says something every 15 seconds; one that is silent for so long is dead."""


class AtollFailure(Exception):
    """An answer of the platform that is no success, or none at all."""

    def __init__(
        self,
        operation: str,
        message: str,
        status: int,
        code: str = "",
        retry_after: Optional[float] = None,
    ) -> None:
        super().__init__(f"{operation}: {message}")
        self.operation = operation
        self.status = status
        """The answer's HTTP status; 0 where none came."""
        self.code = code
        self.retry_after = retry_after
        """Seconds, where the platform says when to ask again."""


class Caller:
    """Asks a platform. What is left out comes from the environment, as the TypeScript client has it."""

    def __init__(
        self,
        url: Optional[str] = None,
        *,
        api_key: Optional[str] = None,
        access_token: Optional[str] = None,
        admin_token: Optional[str] = None,
        team_id: Optional[str] = None,
        timeout: float = 60.0,
        retries: int = 2,
    ) -> None:
        self._url = (url or _set("ATOLL_URL") or _set("E2B_API_URL") or "http://localhost:3000").rstrip("/")
        if api_key is None and access_token is None and admin_token is None:
            api_key = _set("ATOLL_API_KEY") or _set("E2B_API_KEY")
        self._credential = _without_none(
            {
                "X-API-Key": api_key,
                "Authorization": None if access_token is None else f"Bearer {access_token}",
                "X-Admin-Token": admin_token,
                "X-Team-ID": team_id,
            }
        )
        self._timeout = timeout
        self._retries = retries
        self._opener = urllib.request.build_opener(_NoRedirects)

    def ask_json(self, operation: str, method: str, path: str, **more: Any) -> Any:
        return json.loads(self.ask_bytes(operation, method, path, **more))

    def ask_text(self, operation: str, method: str, path: str, **more: Any) -> str:
        return self.ask_bytes(operation, method, path, **more).decode()

    def ask_nothing(self, operation: str, method: str, path: str, **more: Any) -> None:
        self.ask_bytes(operation, method, path, **more)

    def ask_bytes(self, operation: str, method: str, path: str, **more: Any) -> bytes:
        with self._send(operation, method, path, **more) as response:
            try:
                return response.read()
            except (OSError, http.client.HTTPException) as error:
                raise AtollFailure(operation, f"the answer was cut: {error}", response.status) from error

    def follow(
        self, operation: str, method: str, path: str, *, query: Mapping[str, Any], **more: Any
    ) -> Iterator[Any]:
        """What a stream tells until it is over: where a connection ends, another goes on behind the last event."""
        after = query.get("after")
        connected = False
        more["timeout"] = more.get("timeout") or STREAM_IDLE_SECONDS
        while True:
            try:
                with self._send(operation, method, path, query={**query, "after": after}, **more) as response:
                    connected = True
                    for event in _events(response):
                        after = event["id"] or after
                        if event["type"] == "end":
                            return
                        if event["type"] != "ready":
                            yield json.loads(event["data"])
            except AtollFailure as failure:
                if not connected or failure.status not in (0, 429, 503):
                    raise
                time.sleep(RETRY_DELAY_SECONDS)
            except (OSError, http.client.HTTPException):
                time.sleep(RETRY_DELAY_SECONDS)

    def _send(
        self,
        operation: str,
        method: str,
        path: str,
        *,
        path_values: Optional[Mapping[str, str]] = None,
        query: Optional[Mapping[str, Any]] = None,
        headers: Optional[Mapping[str, Optional[str]]] = None,
        body: Any = None,
        timeout: Optional[float] = None,
        token: Optional[str] = None,
    ) -> Any:
        sent = dict(self._credential if token is None else {"Authorization": f"Bearer {token}"})
        sent.update(_without_none(headers or {}))
        may_repeat = method not in ("POST", "PATCH")
        if headers is not None and "idempotency-key" in headers:
            # One key for all tries: the platform does the same once.
            sent.setdefault("idempotency-key", str(uuid.uuid4()))
            may_repeat = True
        data = body
        if body is not None:
            is_bytes = isinstance(body, bytes) or hasattr(body, "read")
            sent["Content-Type"] = "application/octet-stream" if is_bytes else "application/json"
            data = body if is_bytes else json.dumps(body).encode()
        url = self._url + _target(operation, path, path_values or {}, query or {})
        left = 0 if hasattr(data, "read") else self._retries
        while True:
            request = urllib.request.Request(url, data=data, headers=sent, method=method)
            try:
                return self._try(operation, request, timeout or self._timeout)
            except AtollFailure as failure:
                nothing_changed = failure.status in (429, 503)
                may_be_done = failure.status == 0 or failure.code in ("api_connection_lost", "database_outcome_unknown")
                if left <= 0 or not (nothing_changed or (may_be_done and may_repeat)):
                    raise
                left -= 1
                wait = RETRY_DELAY_SECONDS if failure.retry_after is None else failure.retry_after
                time.sleep(min(wait, RETRY_AFTER_MAX_SECONDS))

    def _try(self, operation: str, request: urllib.request.Request, timeout: float) -> Any:
        try:
            return self._opener.open(request, timeout=timeout)
        except urllib.error.HTTPError as error:
            with error:
                raise _failure(operation, error) from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise AtollFailure(operation, f"no answer: {reason}", 0) from error


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The platform sends nobody elsewhere, and a credential is for it alone."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _failure(operation: str, error: urllib.error.HTTPError) -> AtollFailure:
    try:
        told = json.loads(error.read())
    except (ValueError, OSError, http.client.HTTPException):
        told = None  # somebody else on the way has answered
    told = told if isinstance(told, dict) else {}
    try:
        retry_after: Optional[float] = float(error.headers.get("Retry-After", ""))
    except ValueError:
        retry_after = None
    message = told.get("message") or f"status {error.code}"
    return AtollFailure(operation, str(message), error.code, str(told.get("error_code") or ""), retry_after)


def _target(operation: str, path: str, values: Mapping[str, str], query: Mapping[str, Any]) -> str:
    for name, value in values.items():
        if not isinstance(value, str) or value in ("", ".", ".."):
            raise ValueError(f'{operation}: {name} must be a text that is not empty, "." or ".."')
        path = path.replace("{" + name + "}", urllib.parse.quote(value, safe=""))
    members = {name: _text(value) for name, value in query.items() if value is not None}
    return path if not members else f"{path}?{urllib.parse.urlencode(members)}"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _events(response: Any) -> Iterator[Dict[str, str]]:
    """Server-sent events, as they come; one that the stream's end cuts is none. Source: the HTML standard, 9.2."""
    event = {"id": "", "type": "message", "data": ""}
    data = []
    for line in response:
        if not line.endswith(b"\n"):
            return
        name, _, value = line.decode().rstrip("\r\n").partition(":")
        value = value[1:] if value.startswith(" ") else value
        if name == "data":
            data.append(value)
        elif name in ("event", "id"):
            event["type" if name == "event" else "id"] = value
        elif name == "" and value == "" and line.strip() == b"":
            if data:
                yield {**event, "data": "\n".join(data)}
            event, data = {"id": "", "type": "message", "data": ""}, []


def _set(name: str) -> Optional[str]:
    return os.environ.get(name) or None


def _without_none(values: Mapping[str, Optional[str]]) -> Dict[str, str]:
    return {name: value for name, value in values.items() if value is not None}
