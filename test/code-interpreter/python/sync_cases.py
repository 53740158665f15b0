"""What a Python program does with the code interpreter, by the published client's synchronous interface. Each function is a test."""

from e2b import InvalidArgumentException, NotFoundException, SandboxException, TimeoutException
from e2b_code_interpreter import Sandbox
from e2b_code_interpreter.charts import (
    BarChart,
    BoxAndWhiskerChart,
    ChartType,
    LineChart,
    PieChart,
    ScaleType,
    ScatterChart,
    SuperChart,
)

plot = "import matplotlib.pyplot as plt\n"


def state_output_and_result():
    with Sandbox.create() as sandbox:
        seen, results = [], []
        first = sandbox.run_code(
            "import sys\nx = 40\nprint('out')\nprint('err', file=sys.stderr)\nx + 2",
            on_stdout=lambda message: seen.append(("out", message.line)),
            on_stderr=lambda message: seen.append(("err", message.line)),
            on_result=results.append,
        )
        assert first.text == "42" and first.error is None, first
        assert (first.logs.stdout, first.logs.stderr) == (["out\n"], ["err\n"]), first.logs
        assert sorted(seen) == [("err", "err\n"), ("out", "out\n")], seen
        assert [result.is_main_result for result in results] == [True], results
        second = sandbox.run_code("x += 1; x")
        assert second.text == "41" and second.execution_count == first.execution_count + 1, second
        assert "42" in first.to_json()


def errors():
    with Sandbox.create() as sandbox:
        told = []
        execution = sandbox.run_code("def f():\n    return 1/0\nf()", on_error=told.append)
        assert (execution.error.name, execution.error.value) == ("ZeroDivisionError", "division by zero"), execution
        assert "1/0" in execution.error.traceback and [error.name for error in told] == ["ZeroDivisionError"], told
        assert sandbox.run_code("this is no Python").error.name == "SyntaxError"
        assert sandbox.run_code("import os; os._exit(1)").error.name == "UnexpectedEndOfExecution"
        assert sandbox.run_code("'again'").text == "again"


def every_format():
    with Sandbox.create() as sandbox:
        code = """from IPython.display import *
display(HTML("<b>h</b>")); display(Markdown("# m")); display(Latex("$l$")); display(JSON({"j": 1}))
display(SVG('<svg xmlns="http://www.w3.org/2000/svg"/>')); display(Javascript("1"))
display({"application/pdf": "JVBERi0="}, raw=True)
display({"image/jpeg": "/9j/"}, raw=True)"""
        execution = sandbox.run_code(code)
        assert execution.error is None, execution.error
        formats = [[name for name in result.formats() if name != "text"] for result in execution.results]
        assert formats == [["html"], ["markdown"], ["latex"], ["json"], ["svg"], ["javascript"], ["pdf"], ["jpeg"]], formats
        table = sandbox.run_code("import pandas as pd\npd.DataFrame({'a': [1, 2], 'b': ['x', None]})").results[0]
        assert table.data == {"a": [1, 2], "b": ["x", None]} and "<table" in table.html, table.data
        own = sandbox.run_code("class Own:\n    def _repr_mimebundle_(self, **_):\n        return {'x/own': 'mine', 'text/plain': 't'}\nOwn()")
        assert own.results[0].extra == {"x/own": "mine"}, own.results[0].extra


def every_chart():
    with Sandbox.create() as sandbox:

        def chart(code):
            execution = sandbox.run_code(f"{plot}{code}\nplt.show()")
            assert execution.error is None, execution.error
            (result,) = execution.results
            assert result.png, code
            return result.chart

        line = chart("plt.plot([1, 2, 3], [4, 5, 6], label='a'); plt.title('T'); plt.xlabel('X (s)'); plt.ylabel('Y (m)'); plt.yscale('log')")
        assert isinstance(line, LineChart) and (line.title, line.x_label, line.x_unit, line.y_unit) == ("T", "X (s)", "s", "m"), vars(line)
        assert line.y_scale == ScaleType.LOG and line.x_scale == ScaleType.LINEAR, vars(line)
        assert line.elements[0].label == "a" and [tuple(point) for point in line.elements[0].points] == [(1, 4), (2, 5), (3, 6)]
        dates = chart("import datetime as d\nplt.plot([d.datetime(2026, 1, day) for day in (1, 2)], [1, 2])")
        assert dates.x_scale == ScaleType.DATETIME, vars(dates)
        scatter = chart("plt.scatter([1, 2], [3, 4], label='p')")
        assert isinstance(scatter, ScatterChart) and [tuple(point) for point in scatter.elements[0].points] == [(1, 3), (2, 4)]
        bar = chart("plt.bar(['a', 'b'], [1, 2], label='g')")
        assert isinstance(bar, BarChart) and [(each.label, each.value, each.group) for each in bar.elements] == [("a", 1, "g"), ("b", 2, "g")], [vars(each) for each in bar.elements]
        pie = chart("plt.pie([1, 3], labels=['x', 'y'])")
        assert isinstance(pie, PieChart) and [each.label for each in pie.elements] == ["x", "y"]
        box = chart("plt.boxplot([[85, 90, 78, 92, 88], [95, 89, 76, 91, 84, 87]], tick_labels=['a', 'b'], patch_artist=True)")
        assert isinstance(box, BoxAndWhiskerChart), box
        assert [(each.min, each.median, each.max) for each in box.elements] == [(78, 88, 92), (84, 88, 95)], [vars(each) for each in box.elements]
        both = chart("figure, axes = plt.subplots(1, 2)\naxes[0].plot([1, 2])\naxes[1].bar(['a'], [1])")
        assert isinstance(both, SuperChart) and [type(each) for each in both.elements] == [LineChart, BarChart]
        assert chart("plt.imshow([[1, 2], [3, 4]])").type == ChartType.UNKNOWN


def contexts():
    with Sandbox.create() as sandbox:
        context = sandbox.create_code_context(cwd="/root", language="python")
        assert (context.cwd, context.language) == ("/root", "python"), vars(context)
        sandbox.run_code("only_here = 1", context=context)
        assert sandbox.run_code("import os; os.getcwd()", context=context).text == "/root"
        assert sandbox.run_code("only_here").error.name == "NameError"
        assert context.id in [each.id for each in sandbox.list_code_contexts()]
        sandbox.restart_code_context(context.id)
        assert sandbox.run_code("only_here", context=context).error.name == "NameError"
        sandbox.remove_code_context(context)
        assert context.id not in [each.id for each in sandbox.list_code_contexts()]
        for use in (
            lambda: sandbox.run_code("1", context=context),
            lambda: sandbox.restart_code_context(context),
            lambda: sandbox.remove_code_context(context),
        ):
            try:
                use()
                raise AssertionError("a context that is gone was used")
            except (NotFoundException, SandboxException) as error:
                assert "404" in str(error) or isinstance(error, NotFoundException), error


def what_the_caller_has_wrong():
    with Sandbox.create() as sandbox:
        for wrong, reason in (
            (lambda: sandbox.create_code_context(language="cobol"), "cobol is not supported"),
            (lambda: sandbox.run_code("1", language="cobol"), "cobol is not supported"),
            (lambda: sandbox.create_code_context(cwd="/nowhere"), "/nowhere is not there"),
        ):
            try:
                wrong()
                raise AssertionError(f"{reason}: nothing was raised")
            except (SandboxException, InvalidArgumentException) as error:
                assert reason in str(error), error


def languages_and_variables():
    with Sandbox.create(envs={"LEVEL": "sandbox"}) as sandbox:
        assert sandbox.run_code("import os; os.environ['LEVEL']").text == "sandbox"
        assert sandbox.run_code("os.environ['LEVEL']", envs={"LEVEL": "once"}).text == "once"
        assert sandbox.run_code("os.environ['LEVEL']").text == "sandbox"
        assert sandbox.run_code("echo $LEVEL", language="bash").logs.stdout == ["sandbox\n"]
        assert sandbox.run_code("const { a } = await Promise.resolve({ a: 6 })\na * 7", language="js").text == "42"
        assert sandbox.run_code("const n: number = 3\nn + process.env.LEVEL.length", language="ts").text == "10"


def too_long_and_killed():
    with Sandbox.create() as sandbox:
        try:
            sandbox.run_code("import time\ntime.sleep(600)", timeout=1)
            raise AssertionError("a cell over its time did not raise")
        except TimeoutException:
            pass
        assert sandbox.run_code("'still here'").text == "still here"
    try:
        sandbox.run_code("1")
        raise AssertionError("a sandbox that is gone ran a cell")
    except SandboxException:
        pass


def figures_that_are_saved():
    with Sandbox.create() as sandbox:
        saved = sandbox.run_code(f"{plot}plt.plot([1, 2])\nplt.savefig('/tmp/figure.png')\n")
        assert (saved.error, saved.results) == (None, []), saved
        assert len(sandbox.files.read("/tmp/figure.png", format="bytes")) > 1000


def java():
    with Sandbox.create() as sandbox:
        assert sandbox.run_code("int sum(int a, int b) { return a + b; }\nsum(20, 22)", language="java").text == "42"
        printed = sandbox.run_code('System.out.println("seen " + sum(1, 2));', language="java")
        assert "".join(printed.logs.stdout) == "seen 3\n" and printed.error is None, printed
        thrown = sandbox.run_code('throw new IllegalStateException("boom");', language="java").error
        assert (thrown.name, thrown.value) == ("java.lang.IllegalStateException", "boom"), thrown
        assert sandbox.run_code('int wrong = "text";', language="java").error.name == "CompilationException"
        once = sandbox.run_code('System.getProperty("ONCE")', language="java", envs={"ONCE": "yes"})
        assert once.text == "yes", once
        context = sandbox.create_code_context(language="java", cwd="/tmp")
        assert context.language == "java", context
        assert sandbox.run_code('System.getProperty("user.dir")', context=context).text == "/tmp"
        assert sandbox.run_code("sum(1, 1)", context=context).error.name == "CompilationException"


def r():
    with Sandbox.create() as sandbox:
        assert sandbox.run_code("x <- c(1, 2, 3)\nmean(x)", language="r").results[0].text == "[1] 2"
        assert "".join(sandbox.run_code('cat("seen", sum(x))', language="r").logs.stdout) == "seen 6"
        assert "boom" in sandbox.run_code('stop("boom")', language="r").error.value
        plotted = sandbox.run_code("plot(x)", language="r").results
        assert any(result.png or result.svg for result in plotted), plotted
        context = sandbox.create_code_context(language="r", cwd="/tmp")
        assert sandbox.run_code("getwd()", context=context).results[0].text == '[1] "/tmp"'
