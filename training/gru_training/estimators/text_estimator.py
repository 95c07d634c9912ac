"""What estimators that learn from texts have in common: answers to texts."""

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gru_training.data.frames import frame_like, texts_of
from gru_training.estimators.run_estimator import load_tensorflow
from gru_training.estimators.settings import in_python
from gru_training.estimators.text_training import TextTraining
from gru_training.scoring.engine import score_table
from gru_training.task import find_task

if TYPE_CHECKING:
    from sklearn.utils import Tags


class TextEstimator(TextTraining):
    """Trains on texts, and answers texts.

    Attributes:
        run_: The run directory (`gru_training.sentiment.run.SentimentRun`).
    """

    def predict_frame(self, data: Any, *, text: str | None = None) -> Any:
        """Answer texts with a table: labels or numbers, and how sure they are.

        Args:
            data: A table with a column of texts, or texts alone (a list, array or column).
            text: Name of that column; by default that of the training, else found by its name.

        Returns:
            A table of the library that `data` is of (of pandas for lists and arrays), with the
            columns of `gru-train predict`. Rows and index are those of `data`.
        """
        return frame_like(data, self._answered(self._answers(self._texts(data, text))))

    def __sklearn_tags__(self) -> "Tags":
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # rows are texts, (N,) or a table
        tags.input_tags.one_d_array = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True  # read as empty texts
        tags.target_tags.required = False  # may be a column of the table
        return tags

    def _texts(self, data: Any, text: str | None) -> list[str]:
        """The texts of a table, or texts alone."""
        with in_python():
            return texts_of(data, self._columns(data, text).text)

    def _answers(self, texts: list[str]) -> pa.Table:
        """The columns of a scored file."""
        run = self._run()
        load_tensorflow()
        if "scorer" not in self._loaded:
            self._loaded["scorer"] = find_task(self._task).scorer(run)
        return score_table(self._loaded["scorer"], pa.table({"text": pa.array(texts, pa.string())}))

    def _answered(self, answers: pa.Table) -> dict[str, Any]:
        """The columns of what `predict_frame` returns."""
        return {
            name: (
                answers.column(name).to_numpy()
                if pa.types.is_floating(answers.schema.field(name).type)
                else answers.column(name).to_pylist()
            )
            for name in answers.column_names
        }
