"""TF Serving's configuration files: text protos, checked and converted to frozen dataclasses."""

import re
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from google.protobuf import text_format
from google.protobuf.message import Message

from gru_serving.errors import InvalidArgument, NotFound
from gru_serving.protos import pool
from gru_serving.protos.logging_config_pb2 import LoggingConfig
from gru_serving.protos.model_server_config_pb2 import ModelConfig, ModelServerConfig, ModelType

PLATFORM = "tensorflow"
LOG_COLLECTOR = "tfrecord"

_BAD_ESCAPE = "Invalid escape sequence in string literal."
_ESCAPE = re.compile(r"\\(.)")
_KNOWN_ESCAPES = frozenset("abfnrtvxXuU01234567\"'\\")
"""Characters that may follow a backslash; protobuf's Python keeps a backslash before any other."""

MessageT = TypeVar("MessageT", bound=Message)


@dataclass(frozen=True)
class VersionPolicy:
    """The choice of the versions of a model to serve.

    Attributes:
        kind: "latest", "all" or "specific".
        num_versions: Number of the highest versions, for "latest".
        versions: Version numbers, for "specific".
    """

    kind: str = "latest"
    num_versions: int = 1
    versions: tuple[int, ...] = ()


@dataclass(frozen=True)
class ShadowTarget:
    """The version that is also asked what a model is asked, for a comparison of the answers.

    Attributes:
        version: Number of the version.
        share: Share of the requests that are compared, 0 to 1.
        tolerance: Largest difference of numbers that count as equal; None for that of `diff`.
    """

    version: int
    share: float
    tolerance: float | None = None


@dataclass(frozen=True)
class ServedModel:
    """One model to serve.

    Attributes:
        name: Name in requests.
        base_path: The directory that holds the version directories.
        policy: Policy that chooses the versions.
        labels: Version numbers by label.
        logging: Configuration of the prediction log; None where the configuration does not say.
        shadow: Version whose answers are compared with those that clients get; None for none.
    """

    name: str
    base_path: Path
    policy: VersionPolicy = field(default_factory=VersionPolicy)
    labels: Mapping[str, int] = field(default_factory=dict)
    logging: LoggingConfig | None = None
    shadow: ShadowTarget | None = None


def read_text_proto(path: str, message: MessageT) -> MessageT:
    """Fill `message` from a text file and return it.

    Raises:
        NotFound: No such file.
        InvalidArgument: The file does not parse; line and column are on stderr, as TF Serving's.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise NotFound(f"{path}; No such file or directory") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"cannot read {path}: {error}") from None
    try:
        _require_known_escapes(text)
        return text_format.Parse(text, message, descriptor_pool=pool.POOL)
    except text_format.ParseError as error:
        where = f"{error.GetLine() or 1}:{error.GetColumn() or 1}"
        reason = re.sub(r"^\d+:\d+ ?: ?", "", str(error))
        print(
            f"Error parsing text-format {message.DESCRIPTOR.full_name}: {where}: {reason}",
            file=sys.stderr,
        )
        raise InvalidArgument(f"Invalid protobuf file: '{path}'") from None


def _require_known_escapes(text: str) -> None:
    """Raise ParseError at the first escape that protobuf's C++ refuses but its Python accepts."""
    tokenizer = text_format.Tokenizer(text.split("\n"))
    while not tokenizer.AtEnd():
        if tokenizer.token[0] in "\"'":
            unknown = set(_ESCAPE.findall(tokenizer.token[1:-1])) - _KNOWN_ESCAPES
            if unknown:
                raise tokenizer.ParseError(_BAD_ESCAPE)  # type: ignore[arg-type]  # a text
        tokenizer.NextToken()


def read_model_config(
    path: str, may_log: bool = False, known: Collection[str] = ()
) -> list[ServedModel] | None:
    """Read the models of a `--model_config_file`, like `served_models`; None without a list."""
    config = read_text_proto(path, ModelServerConfig())
    models = served_models(config, may_log, known)
    return models if config.HasField("model_config_list") else None


def served_models(
    config: ModelServerConfig, may_log: bool = False, known: Collection[str] = ()
) -> list[ServedModel]:
    """Return the models of a ModelServerConfig, checked.

    Args:
        config: The message.
        may_log: Whether there is a place for prediction logs; without one a `logging_config` is
            refused, as TF Serving's binary refuses it.
        known: Names of models that are configured already.

    Raises:
        InvalidArgument: The configuration is invalid; the message is TF Serving's.
    """
    if config.HasField("custom_model_config"):
        raise InvalidArgument("ModelServer does not yet support custom model config.")
    entries = config.model_config_list.config
    listed: set[str] = set()
    for entry in entries:
        if entry.name in listed:
            raise InvalidArgument(
                f"Illegal to list model {entry.name} multiple times in config list"
            )
        listed.add(entry.name)
    models = [
        replace(
            single_model(entry.name, entry.base_path, _policy(entry), dict(entry.version_labels)),
            shadow=_shadow(entry),
        )
        for entry in entries
    ]
    for entry in entries:
        _check_platform(entry, entry.name in known)
    return [_with_logging(*pair, may_log) for pair in zip(models, entries, strict=True)]


def single_model(
    name: str,
    base_path: str,
    policy: VersionPolicy | None = None,
    labels: Mapping[str, int] | None = None,
) -> ServedModel:
    """Describe one model after checking its base path.

    Raises:
        InvalidArgument: The path is relative or none, or a URI of a kind this engine cannot read.
    """
    scheme, separator, rest = base_path.partition("://")
    if separator:
        if scheme != "file":
            raise InvalidArgument(
                f"model {name}: this engine reads local paths; got base_path()={base_path}"
            )
        base_path = rest
    if "\0" in base_path:
        raise InvalidArgument(
            f"model {name}: a path cannot contain a NUL character; got base_path()={base_path!r}"
        )
    if not base_path.startswith("/"):
        raise InvalidArgument(
            f"Expected model {name} to have an absolute path or URI; got base_path()={base_path}"
        )
    return ServedModel(name, Path(base_path), policy or VersionPolicy(), labels or {})


def _with_logging(model: ServedModel, entry: ModelConfig, may_log: bool) -> ServedModel:
    if not entry.HasField("logging_config"):
        return model
    if not may_log:
        raise InvalidArgument("No request-logger-creator provided.")
    _check_logging(entry.name, entry.logging_config)
    return replace(model, logging=entry.logging_config)


def _shadow(entry: ModelConfig) -> ShadowTarget | None:
    """Return the shadow of a model.

    Raises:
        InvalidArgument: The addition does not name one version of the model, or a figure is wrong.
    """
    if not entry.HasField("shadow"):
        return None
    shadow, where = entry.shadow, f"shadow of model {entry.name}"
    kind = shadow.WhichOneof("target")
    if kind is None:
        raise InvalidArgument(f"{where}: expected a version or a label; got neither")
    if kind == "label" and shadow.label not in entry.version_labels:
        raise InvalidArgument(
            f"{where}: expected one of the version_labels {sorted(entry.version_labels)}; got the "
            f'label "{shadow.label}"'
        )
    version = entry.version_labels[shadow.label] if kind == "label" else shadow.version
    if version < 0:
        raise InvalidArgument(f"{where}: expected a version from 0; got {version}")
    if not (shadow.HasField("share") and 0 <= shadow.share <= 1):
        got = shadow.share if shadow.HasField("share") else "none"
        raise InvalidArgument(f"{where}: expected a share of the requests, 0 to 1; got {got}")
    tolerance = shadow.tolerance if shadow.HasField("tolerance") else None
    if tolerance is not None and not tolerance >= 0:  # NaN is not
        raise InvalidArgument(f"{where}: expected a tolerance from 0; got {tolerance}")
    return ShadowTarget(version, shadow.share, tolerance)


def _check_platform(entry: ModelConfig, known: bool) -> None:
    has_type = entry.model_type != ModelType.MODEL_TYPE_UNSPECIFIED
    if has_type == bool(entry.model_platform):
        which = "both" if has_type else "neither"
        between = "and" if has_type else "nor"
        raise InvalidArgument(
            f"Illegal setting {which} ModelServerConfig::model_type (deprecated) {between} "
            f"ModelServerConfig::model_platform, model name is {entry.name}"
        )
    if has_type and entry.model_type != ModelType.TENSORFLOW:
        raise InvalidArgument(
            f"ModelServerConfig::model_type choice {entry.model_type} not supported."
        )
    if entry.model_platform not in ("", PLATFORM):
        if known:
            raise InvalidArgument(
                f"Illegal to change a model's platform. For model {entry.name} platform was "
                f"{PLATFORM} and new platform requested is {entry.model_platform}"
            )
        raise InvalidArgument(
            f"Model {entry.name} requests unsupported platform {entry.model_platform}"
        )


def _check_logging(model: str, config: LoggingConfig) -> None:
    """Check that the `logging_config` of a model can be honoured.

    Raises:
        InvalidArgument: A collector of another type, a rate beyond 0 to 1, or a file outside the
            directory of the logs.
    """
    kind = config.log_collector_config.type
    if kind not in ("", LOG_COLLECTOR):
        raise InvalidArgument(
            f"logging_config of model {model}: log_collector_config.type must be "
            f'"{LOG_COLLECTOR}" or empty; got "{kind}"'
        )
    rate = config.sampling_config.sampling_rate
    if not 0 <= rate <= 1:
        raise InvalidArgument(
            f"logging_config of model {model}: sampling_rate must be between 0 and 1; got {rate}"
        )
    prefix = Path(config.log_collector_config.filename_prefix)
    if prefix.is_absolute() or ".." in prefix.parts:
        raise InvalidArgument(
            f"logging_config of model {model}: filename_prefix must stay inside "
            f"--prediction_log_directory; got {prefix}"
        )


def _policy(entry: ModelConfig) -> VersionPolicy:
    proto = entry.model_version_policy
    kind = proto.WhichOneof("policy_choice")
    if kind == "all":
        return VersionPolicy("all")
    if kind == "specific":
        return VersionPolicy("specific", versions=tuple(proto.specific.versions))
    return VersionPolicy("latest", num_versions=proto.latest.num_versions or 1)
