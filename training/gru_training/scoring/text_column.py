"""A column of texts, from any kind of column that can be read as one."""

import pyarrow as pa

from gru_training.scoring.scorer import RowError


def text_column(column: pa.Array) -> pa.Array:
    """The texts, as `large_string`: missing ones are empty, whole numbers are their digits.

    Raises:
        RowError: The column holds no texts.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.dictionary_decode(), kind.value_type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if not (is_text or pa.types.is_integer(kind) or pa.types.is_null(kind)):
        raise RowError(0, "text", f"expected texts, got {kind}")
    texts = column.cast(pa.large_string())
    return texts.fill_null("") if texts.null_count else texts  # to fill it loads pandas
