"""The base class of tools whose prompt has variables: every row of their values is asked, as a matrix of answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from famnb.errors import InvalidRequest
from famnb.widget.form.draft import find_variables
from famnb.widget.form.python_code import experiment_name
from famnb.widget.form.tool import FormTool
from famnb.widget.runtime.intent import intent

if TYPE_CHECKING:
    from famnb.widget.experiment.matrix import Matrix


class RowsTool(FormTool):
    """A tool with a form whose prompt is sent once for each row of values."""

    matrix: Matrix | None = None
    """The matrix that "Run all rows" has opened last."""

    # What a tool defines

    def variants(self) -> dict[str, dict[str, Any]]:
        """Return the settings by which each row is asked, by their labels, as an experiment takes them."""
        raise NotImplementedError

    def templates(self) -> list[str]:
        """Return the prompts that may have variables, the latest first."""
        return [self._box.prompt.strip()]

    # What both need

    def run_rows(self) -> Matrix:
        """Send every row of the variables' values with every variant, each by itself; return the matrix of answers.

        It stands below the tool, and is its `matrix`. Its calls are those of an experiment, `matrix.experiment`, which
        a Board's `code` makes again, answers and grades included. Raises InvalidRequest if no row has all values.
        """
        # Here, since it loads pandas, which takes longer than the tool to be drawn.
        from famnb.experiment.experiment import BaseExperiment
        from famnb.widget.experiment.matrix import Matrix

        with self.lock:
            template, rows = self.table_of_values()
            if not rows:
                raise InvalidRequest(
                    "rows: none has a value for each variable yet; write a variable such as {city} in the prompt and "
                    "fill in the table"
                )
            if self._box.pictures or find_variables(self._box.system):
                raise InvalidRequest("rows: a matrix asks texts alone, with variables in the prompt alone")
            name = experiment_name(template)
            self.matrix = Matrix(
                BaseExperiment(rows, self.variants(), template=template, name=name, client=self._client)
            )
            self.show_below(self.matrix)
            self.matrix.run()
            return self.matrix

    @intent
    def run_all_rows(self) -> None:
        """Send every row of the variables' values with every variant."""
        self.run_rows()

    def table_of_values(self) -> tuple[str, list[dict[str, str]]]:
        """Return the prompt with its variables, and the rows that have a value for each; none without a variable."""
        template = next(filter(find_variables, self.templates()), "")
        names = find_variables(template)
        rows = [{name: row.get(name, "") for name in names} for row in self._box.rows]
        return template, [row for row in rows if all(row.values())]
