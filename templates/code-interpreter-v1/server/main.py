"""Runs code in kernels that keep their state, for clients of the code interpreter (port 49999)."""

import asyncio
import collections
import contextlib
import json
import logging
import os

import tornado.httpclient
import tornado.iostream
import tornado.web

import languages
import results
from context import Context

PORT = 49999
HOME = "/home/user"
AGENT_ENVIRONMENT = "http://127.0.0.1:49983/envs"
BODY_BYTES_MAX = 64 << 20
REASON_CHARACTERS_MAX = 500
KEEPALIVE_SECONDS = 5


class Contexts:
    def __init__(self):
        self.all = {}
        self.defaults = {}
        self.starting = collections.defaultdict(asyncio.Lock)

    async def create(self, language, cwd):
        context = Context(language, cwd)
        try:
            await context.start()
        except Exception:
            await context.stop()
            raise
        self.all[context.id] = context
        return context

    async def default(self, language):
        """The one that is used where none is named, made at its first use."""
        async with self.starting[language]:
            known = self.all.get(self.defaults.get(language, ""))
            if known is None:
                known = await self.create(language, HOME)
                self.defaults[language] = known.id
            return known

    async def remove(self, context):
        del self.all[context.id]
        await context.stop()


class Handler(tornado.web.RequestHandler):
    def initialize(self, contexts):
        self.contexts = contexts

    def set_default_headers(self):
        self.set_header("Access-Control-Allow-Origin", "*")
        self.set_header("Access-Control-Allow-Methods", "*")
        self.set_header("Access-Control-Allow-Headers", "*")

    def options(self, *_):
        self.set_status(204)

    def answer(self, value):
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps(value))

    def refuse(self, status, text):
        # Some clients show the reason phrase, some the body.
        self.set_status(status, reason="".join(each if " " <= each <= "~" else "?" for each in text)[:REASON_CHARACTERS_MAX])
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(text)

    def body(self):
        try:
            value = json.loads(self.request.body or b"{}")
        except ValueError:
            raise tornado.web.HTTPError(400, reason="the body is not JSON")
        if not isinstance(value, dict):
            raise tornado.web.HTTPError(400, reason="the body is not an object")
        return value

    def known(self, context_id):
        context = self.contexts.all.get(context_id)
        if context is None:
            self.refuse(404, f"Context {context_id} not found")
        return context

    def language(self, name):
        """None, with the answer given, where there is no such language here."""
        language = languages.named(name)
        if language is None:
            self.refuse(400, f"Language {name} is not supported; there are {', '.join(sorted(languages.offered()))}")
        return language

    def directory(self, path):
        """None, with the answer given, where there is no such directory."""
        path = path or HOME
        if not isinstance(path, str) or not os.path.isdir(path) or not os.access(path, os.X_OK):
            return self.refuse(400, f"The working directory {path} is not there, or is no directory")
        return path

    def environment(self, values):
        """None, with the answer given, where they are no variables."""
        values = {} if values is None else values
        if isinstance(values, dict) and all(isinstance(value, str) and name and not set(name) & set("=\0") for name, value in values.items()):
            return values
        return self.refuse(400, "env_vars must have names without '=', and texts as values")


class Health(Handler):
    def get(self):
        self.answer("OK")


class ContextList(Handler):
    def get(self):
        self.answer([context.describe() for context in self.contexts.all.values()])

    async def post(self):
        body = self.body()
        language = self.language(body.get("language"))
        cwd = language and self.directory(body.get("cwd"))
        if not cwd:
            return
        try:
            self.answer((await self.contexts.create(language, cwd)).describe())
        except Exception as failure:
            self.refuse(500, f"The context could not be started: {failure}")


class OneContext(Handler):
    async def delete(self, context_id):
        context = self.known(context_id)
        if context:
            await self.contexts.remove(context)
            self.finish()


class Restart(Handler):
    async def post(self, context_id):
        context = self.known(context_id)
        if context:
            await context.restart()
            self.finish()


class Execute(Handler):
    async def post(self):
        body = self.body()
        if body.get("context_id") and body.get("language"):
            return self.refuse(400, "Only one of context_id and language can be given")
        if not isinstance(body.get("code"), str):
            return self.refuse(400, "code is required")
        environment = self.environment(body.get("env_vars"))
        if environment is None:
            return
        context = language = None
        if body.get("context_id"):
            context = self.known(body["context_id"])
        else:
            language = self.language(body.get("language"))
        if not (context or language):
            return
        self.set_header("Content-Type", "application/x-ndjson")
        lines = self.lines(context, language, body["code"], environment)
        self.execution = asyncio.ensure_future(self.stream(lines))
        try:
            await self.execution
        except asyncio.CancelledError:
            pass

    async def lines(self, context, language, code, environment):
        """The lines of an execution; without a context in the default one of the language."""
        if context is None:
            try:
                # Others may wait for it: it starts also where this client leaves.
                context = await asyncio.shield(self.contexts.default(language))
            except Exception as failure:
                yield results.error("UnexpectedEndOfExecution", f"The kernel could not be started: {failure}")
                return
        token = self.request.headers.get("X-Access-Token")
        async with contextlib.aclosing(context.run(code, environment, lambda: agent_environment(token))) as execution:
            async for line in execution:
                yield line

    async def stream(self, lines):
        step = None
        try:
            # Clients wait for the head of an answer less long than for its lines, which may have to wait for other executions.
            await self.flush()
            while True:
                step = asyncio.ensure_future(next_line(lines))
                while not step.done():
                    await asyncio.wait([step], timeout=KEEPALIVE_SECONDS)
                    if not step.done():
                        self.write(results.line("keepalive"))
                        await self.flush()
                line = step.result()
                if line is None:
                    break
                self.write(line)
                await self.flush()
            self.write(results.line("end_of_execution"))
            await self.finish()
        except tornado.iostream.StreamClosedError:
            pass
        finally:
            if step is not None and not step.done():
                step.cancel()
                await asyncio.wait([step])
            await lines.aclose()

    def on_connection_close(self):
        execution = getattr(self, "execution", None)
        if execution:
            execution.cancel()


async def next_line(lines):
    """None at their end."""
    async for line in lines:
        return line
    return None


async def agent_environment(token):
    """The sandbox's own variables, as its agent tells them to whoever may ask."""
    try:
        headers = {"X-Access-Token": token} if token else {}
        answer = await tornado.httpclient.AsyncHTTPClient().fetch(AGENT_ENVIRONMENT, headers=headers, request_timeout=5)
        return {str(name): str(value) for name, value in json.loads(answer.body).items()}
    except Exception as failure:
        logging.warning("the environment of the sandbox is not known: %s", failure)
        return {}


async def main():
    contexts = Contexts()
    shared = {"contexts": contexts}
    application = tornado.web.Application(
        [
            ("/health", Health, shared),
            ("/execute", Execute, shared),
            ("/contexts", ContextList, shared),
            ("/contexts/([^/]+)", OneContext, shared),
            ("/contexts/([^/]+)/restart", Restart, shared),
        ]
    )
    # What is used most is there when sandboxes begin, with the memory of this one.
    for language in ("python", "javascript", "bash"):
        await contexts.default(language)
    application.listen(PORT, "0.0.0.0", max_body_size=BODY_BYTES_MAX, max_buffer_size=BODY_BYTES_MAX)
    await asyncio.Event().wait()


asyncio.run(main())
