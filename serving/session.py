"""A SavedModel's graph in a TensorFlow session, run as TF Serving runs it.

`Session.run` compares fed shapes with static ones and casts dtypes, and
`tf.saved_model.load(...).signatures` refuses some valid TF1 SavedModels; TF Serving's C++ does
neither. The call below `Session.run` behaves as TF Serving does, error texts included. It is
private to TensorFlow, so all private names are in this file, pinned by its test.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.client import pywrap_tf_session

from serving.config_files import read_text_proto
from serving.errors import FailedPrecondition, InvalidArgument, NotFound, ServingError, from_code
from serving.protos.get_model_metadata_pb2 import SignatureDefMap


@dataclass(frozen=True)
class SessionOptions:
    """How sessions run.

    Attributes:
        intra_op_threads: Threads inside one operation; 0 for what `config` says, or as many as
            CPUs.
        inter_op_threads: Operations at once; 0 likewise.
        gpu_memory_fraction: Part of each GPU's memory to take; 0 for what `config` says, or what
            TensorFlow decides.
        config: A serialized ConfigProto, for all the rest.
    """

    intra_op_threads: int = 0
    inter_op_threads: int = 0
    gpu_memory_fraction: float = 0.0
    config: bytes = b""

    def config_proto(self) -> Any:
        """As TensorFlow takes it, a `ConfigProto`."""
        proto = tf.compat.v1.ConfigProto.FromString(self.config)
        if self.intra_op_threads:
            proto.intra_op_parallelism_threads = self.intra_op_threads
        if self.inter_op_threads:
            proto.inter_op_parallelism_threads = self.inter_op_threads
        if self.gpu_memory_fraction:
            proto.gpu_options.per_process_gpu_memory_fraction = self.gpu_memory_fraction
        return proto


def read_session_config(path: str) -> bytes:
    """A `--tensorflow_session_config_file`: a ConfigProto as text, serialized.

    Raises:
        ServingError: No such file, or it does not parse.
    """
    serialized: bytes = read_text_proto(path, tf.compat.v1.ConfigProto()).SerializeToString()
    return serialized


class GraphSession:
    """One loaded MetaGraph; its methods may be called from several threads.

    Args:
        directory: Of the SavedModel.
        tags: Of the MetaGraph.
        options: Threads.

    Attributes:
        signatures: As stored in the SavedModel.

    Raises:
        ServingError: The directory holds no SavedModel, not one with these tags, or a broken one.
    """

    def __init__(
        self,
        directory: Path,
        tags: Sequence[str] = ("serve",),
        options: SessionOptions | None = None,
    ) -> None:
        config = (options or SessionOptions()).config_proto()
        self._graph = tf.Graph()
        self._session = tf.compat.v1.Session(graph=self._graph, config=config)
        try:
            with self._graph.as_default():
                meta_graph = _load(self._session, tags, directory)
            self._session._extend_graph()
        except BaseException:
            self._session.close()
            raise
        self.signatures = SignatureDefMap()
        for name in meta_graph.signature_def:
            serialized = meta_graph.signature_def[name].SerializeToString()
            self.signatures.signature_def[name].MergeFromString(serialized)

    def tensor(self, name: str) -> Any:
        """A handle of a graph tensor for `run`.

        Args:
            name: `x:0`; without a number its first output.

        Raises:
            NotFound: No such tensor.
        """
        full = name if ":" in name else f"{name}:0"
        try:
            return self._graph.get_tensor_by_name(full)._as_tf_output()
        except (KeyError, ValueError, TypeError):
            raise NotFound(
                f"Tensor {full}, specified in either feed_devices or fetch_devices was not found "
                "in the Graph"
            ) from None

    def run(
        self, feeds: Mapping[Any, np.ndarray], fetches: Sequence[Any], timeout_ms: int = 0
    ) -> list[np.ndarray]:
        """Run the graph.

        Args:
            feeds: Arrays by the handle of the tensor they stand for.
            fetches: Handles of the tensors wanted.
            timeout_ms: Time allowed; 0 for no limit.

        Returns:
            One array per fetch.

        Raises:
            ServingError: With TensorFlow's code and text.
        """
        options = None
        if timeout_ms > 0:
            run_options = tf.compat.v1.RunOptions(timeout_in_ms=timeout_ms)
            options = pywrap_tf_session.TF_NewBufferFromString(run_options.SerializeToString())
        try:
            outputs = self._session._call_tf_sessionrun(
                options, dict(feeds), list(fetches), [], None
            )
        except tf.errors.OpError as error:
            raise from_code(error.error_code, error.message) from None
        except (UnicodeDecodeError, ValueError, TypeError) as error:
            # Texts that quote bytes of the input which are not UTF-8 fail on their way up here.
            raise InvalidArgument(f"the graph refused its input: {error}") from None
        except RuntimeError as error:
            raise FailedPrecondition(str(error)) from None
        finally:
            if options is not None:
                pywrap_tf_session.TF_DeleteBuffer(options)
        return [np.asarray(output) for output in outputs]

    def close(self) -> None:
        """Free the graph and its variables; no run may be under way."""
        self._session.close()


def _load(session: Any, tags: Sequence[str], directory: Path) -> Any:
    # The call is deprecated in favour of the loader that refuses TF1 SavedModels.
    logger = logging.getLogger("tensorflow")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        return tf.compat.v1.saved_model.load(session, list(tags), str(directory))
    except tf.errors.OpError as error:
        raise from_code(error.error_code, error.message) from None
    except ServingError:
        raise
    except OSError as error:
        raise NotFound(
            f"Could not find SavedModel .pb or .pbtxt at supplied export directory path: "
            f"{directory}. Details: {error}"
        ) from None
    except Exception as error:
        # Whatever a broken file makes of the importer must not end the server.
        raise InvalidArgument(f"cannot load the SavedModel in {directory}: {error}") from error
    finally:
        logger.setLevel(level)
