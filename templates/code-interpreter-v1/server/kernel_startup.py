"""Runs in every Python kernel before the user's code: gives results the two types that clients show as data and charts."""

import json
import os

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
        from e2b_charts import chart_figure_to_dict

        return json.loads(json.dumps(chart_figure_to_dict(figure), default=str))
    except Exception:
        return None


shell = get_ipython()
for formatter in (DataFormatter(parent=shell.display_formatter), ChartFormatter(parent=shell.display_formatter)):
    shell.display_formatter.formatters[formatter.format_type] = formatter
shell.display_formatter.formatters["e2b/data"].for_type_by_name("pandas.core.frame", "DataFrame", _table)
shell.display_formatter.formatters["e2b/data"].for_type_by_name("pandas", "DataFrame", _table)
os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
# `json` stays: it is looked up when a table is shown.
del shell, formatter, os
