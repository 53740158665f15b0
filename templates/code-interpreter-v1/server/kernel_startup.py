"""Runs in every Python kernel before the user's code: gives results the two types that clients show as data and charts."""

import importlib.abc
import importlib.util
import json
import os
import sys
import warnings

from IPython import get_ipython
from IPython.core.formatters import BaseFormatter
from traitlets import ObjectName, Unicode


class DataFormatter(BaseFormatter):
    """A table as a map from column to values."""

    format_type = Unicode("e2b/data")
    print_method = ObjectName("_repr_e2b_data_")
    _return_type = dict


class ChartFormatter(BaseFormatter):
    """A figure as the numbers behind it."""

    format_type = Unicode("e2b/chart")
    print_method = ObjectName("_repr_e2b_chart_")
    _return_type = dict

    def __call__(self, value):
        # Not by registration: the inline backend takes every registered formatter of figures away when it is set up.
        return _chart(value) if any(base.__module__ == "matplotlib.figure" and base.__name__ == "Figure" for base in type(value).__mro__) else None


def _table(frame):
    try:
        # Through JSON, so that times and missing values have the one form that JSON gives them.
        return {str(column): json.loads(frame[column].to_json(orient="values", date_format="iso", default_handler=str)) for column in frame.columns}
    except Exception:
        return None


def _chart(figure):
    try:
        # What the serializer thinks of a chart's numbers is no concern of the code that drew it.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from e2b_charts import chart_figure_to_dict

            return json.loads(json.dumps(chart_figure_to_dict(figure), default=str))
    except Exception:
        return None


# Matplotlib saves by Pillow.
_figures_being_saved = []


def _show_images(module):
    """Images of Pillow are results where they are shown, and where they are saved to a path: there is no display here."""
    from IPython.display import display

    save = module.Image.save

    def save_and_show(image, fp, *arguments, **options):
        save(image, fp, *arguments, **options)
        if isinstance(fp, str) and not _figures_being_saved:
            display(image)

    module.Image.save = save_and_show
    module.Image.show = lambda image, *_, **__: display(image)


def _leave_out_saved_figures(module):
    """A figure that a cell saves to a path and does not show is no result; others are shown when the cell has ended."""
    savefig = module.Figure.savefig

    def save(figure, fname, *arguments, **options):
        _figures_being_saved.append(figure)
        try:
            savefig(figure, fname, *arguments, **options)
        finally:
            _figures_being_saved.pop()
        figure._is_saved = isinstance(fname, (str, os.PathLike))

    def close_saved():
        from matplotlib import pyplot

        for number in pyplot.get_fignums():
            if getattr(pyplot._pylab_helpers.Gcf.figs[number].canvas.figure, "_is_saved", False):
                pyplot.close(number)

    module.Figure.savefig = save
    # Before what shows all figures that are left, which comes with the backend.
    get_ipython().events.register("post_execute", close_saved)


class _AfterImport(importlib.abc.MetaPathFinder):
    """Calls `then` with the module of that name when the code imports it, so that kernels which never do start as fast."""

    def __init__(self, name, then):
        self.name = name
        self.then = then

    def find_spec(self, name, path, target=None):
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            self.then(module)

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path[:0] = [_AfterImport("PIL.Image", _show_images), _AfterImport("matplotlib.figure", _leave_out_saved_figures)]

shell = get_ipython()
for formatter in (DataFormatter(parent=shell.display_formatter), ChartFormatter(parent=shell.display_formatter)):
    shell.display_formatter.formatters[formatter.format_type] = formatter
shell.display_formatter.formatters["e2b/data"].for_type_by_name("pandas.core.frame", "DataFrame", _table)
shell.display_formatter.formatters["e2b/data"].for_type_by_name("pandas", "DataFrame", _table)
os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
# What the functions above look up stays: modules and `get_ipython`.
del shell, formatter
