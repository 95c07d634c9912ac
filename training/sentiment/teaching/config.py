"""The settings of self-training."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from training.config import require_at_least
from training.errors import ConfigError


@dataclass(frozen=True)
class TeachingConfig:
    """A trained run whose answers to texts without labels are learned beside the labels."""

    teach: Annotated[Path | None, tyro.conf.arg(metavar="RUN")] = None
    """Also learn what this run answers to the texts of --unlabelled. It must be of the same
    classes, and must not have been trained on the rows that are held out here."""
    teach_texts: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """Read no more of these texts than this, drawn under the seed; default: all."""

    def __post_init__(self) -> None:
        if self.teach_texts is None:
            return
        if self.teach is None:
            raise ConfigError("--teach-texts needs --teach RUN, the run that is to label them")
        require_at_least("--teach-texts", self.teach_texts, 1)
