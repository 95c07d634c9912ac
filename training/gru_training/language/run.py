"""A run of the language task.

Besides what every run holds (`gru_training.runs.directory`):

=========================  ====================================================================
vocabulary.txt             one token per line; the line number from 0 is the id. 2 is the end
held_out_texts.json        the first test documents, each cut behind 2,000 characters
curves.png                 loss and bits per token over the epochs
=========================  ====================================================================
"""

from functools import cached_property
from typing import TYPE_CHECKING, cast

from gru_training.errors import DataError, RunDirectoryError
from gru_training.language.config import LanguageConfig, Unit
from gru_training.runs.directory import TaskRun

if TYPE_CHECKING:
    from gru_training.language.model import LanguageModel
    from gru_training.words.vocabulary import TextPreprocessor, Vocabulary


class LanguageRun(TaskRun):
    """A complete run of the language task."""

    @cached_property
    def config(self) -> LanguageConfig:
        """The settings of the run."""
        return self._read_config("language", LanguageConfig)

    @property
    def unit(self) -> Unit:
        """The unit that is predicted at each step."""
        return self.config.data.reads

    @cached_property
    def vocabulary(self) -> "Vocabulary":
        """The known words or characters."""
        from gru_training.language.reading import END, END_ID
        from gru_training.words.vocabulary import load_vocabulary

        path = self.path / "vocabulary.txt"
        try:
            vocabulary = load_vocabulary(path)
        except (DataError, ValueError) as error:
            raise RunDirectoryError(str(error)) from error
        if vocabulary.tokens[END_ID : END_ID + 1] != (END,):
            raise RunDirectoryError(f"{path}: expected {END} in line {END_ID + 1}")
        return vocabulary

    def preprocessor(self) -> "TextPreprocessor":
        """Return the conversion of text to token ids, as in training."""
        from gru_training.words.vocabulary import TextPreprocessor

        return TextPreprocessor(self.vocabulary, max_tokens=1, reading=self.unit)

    def load_model(self) -> "LanguageModel":
        """Load the model of the best epoch.

        Raises:
            RunDirectoryError: The file is damaged, or knows another number of tokens than the run.
        """
        from gru_training.language.model import LanguageModel

        model = super().load_model()
        if not isinstance(model, LanguageModel):
            raise RunDirectoryError(
                f"{self.path}: expected a LanguageModel in model.keras, got {type(model).__name__}"
            )
        if model.vocabulary_size != len(self.vocabulary):
            raise RunDirectoryError(
                f"{self.path}: expected as many tokens in vocabulary.txt as model.keras knows, "
                f"{model.vocabulary_size}; got {len(self.vocabulary)}"
            )
        return model

    def held_out_texts(self) -> list[str]:
        """Return the first test documents, each cut after 2,000 characters."""
        from gru_training.language.evaluation import TEXTS

        texts = self._json(TEXTS)
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise RunDirectoryError(f"{self.path / TEXTS}: expected a list of texts")
        return cast(list[str], texts)
