"""The settings of estimators that learn from texts."""

from gru_training.estimators.settings import Settings
from gru_training.sentiment.config import PRESETS, SentimentConfig

SETTINGS = Settings(
    SentimentConfig,
    PRESETS,
    {
        "data": "give the data to fit",
        "more_data": "give all rows to fit",
        "validation": "give the rows to fit as validation=",
        "test": "give the rows to fit as test=",
        "text_column": "give it to fit as text=",
        "label_column": "give it to fit as label=",
        "label_columns": "give them to fit as label=[...]",
        "part_column": "give the parts to fit as validation= and test=",
        "debug": "errors of Python show where they arose",
    },
)
