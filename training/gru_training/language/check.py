"""Documents looked at before training; needs no TensorFlow."""

from functools import partial

from gru_training.data.check import DataCheck, DataTable
from gru_training.data.digest import data_digest
from gru_training.data.problems import DataProblemsError
from gru_training.errors import DataError, ForeignDataError
from gru_training.language.config import LanguageConfig
from gru_training.language.data import LanguageData, load_language_data, source_of


def check_language(config: LanguageConfig) -> DataCheck:
    """Read and split what a language model would be trained on.

    Raises:
        ForeignDataError: A table has no column of texts.
    """
    source = str(source_of(config.data))
    data: LanguageData | None = None
    errors: tuple[str, ...] = ()
    try:
        data = load_language_data(config.data, config.training.seed)
    except ForeignDataError:
        raise
    except DataProblemsError as error:
        errors = error.messages
    except DataError as error:
        errors = (str(error),)
    if data is None:
        return DataCheck(source, "nothing that could be read", None, errors, (), (), None)
    notes = data.notes
    if config.data.data is None:
        notes = (*notes, f"texts of {source}: SHA-256 {data_digest(data.contents())[:16]}")
    return DataCheck(source, _summary(data), partial(_table, data), (), (), notes, data)


def _summary(data: LanguageData) -> str:
    counts = ", ".join(f"{len(rows):,} {part}" for part, rows in data.parts().items())
    letters = sum(len(text) for rows in data.parts().values() for text in rows)
    return f"{letters:,} characters; documents: {counts}"


def _table(data: LanguageData) -> DataTable:
    """Each part with its documents, characters and words."""
    rows = []
    for part, documents in data.parts().items():
        lengths = [len(text) for text in documents]
        words = sum(len(text.split()) for text in documents)
        cells = len(documents), sum(lengths), words, max(lengths)
        rows.append((part, *(f"{cell:,}" for cell in cells)))
    return DataTable(("part", "documents", "characters", "words", "longest"), rows)
