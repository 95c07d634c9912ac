"""Our protos, compared with those in TensorFlow and tensorflow-serving-api."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from google.protobuf import text_format

from gru_serving import protos
from gru_serving.protos import pool

MODULES = sorted(path.stem for path in Path(protos.__file__).parent.glob("*_pb2.py"))
# Not in any released Python package (monitoring_config.proto, ssl_config.proto,
# session_bundle_config.proto, saved_model_config.proto, profiler_service.proto); field numbers as
# in TF Serving's and TensorFlow's sources.
WITHOUT_PEER = {
    "monitoring_config_pb2",
    "ssl_config_pb2",
    "batching_parameters_pb2",
    "profiler_service_pb2",
    "saved_model_config_pb2",
    "request_identity_pb2",  # this server's own
    "shadow_config_pb2",
}
ADDED = {"tensorflow.serving.ModelConfig": {"shadow"}}
LEFT_OUT = {
    "tensorflow.serving.SessionRunRequest": {"options"},
    "tensorflow.serving.SessionRunResponse": {"metadata"},
    # Of a SavedModel only what describes signatures is read.
    "tensorflow.MetaGraphDef": {
        *("graph_def", "saver_def", "collection_def", "asset_file_def", "object_graph_def"),
    },
    "tensorflow.MetaGraphDef.MetaInfoDef": {
        *("meta_graph_version", "stripped_op_list", "any_info", "tensorflow_version"),
        *("tensorflow_git_version", "stripped_default_attrs", "function_aliases"),
    },
    "tensorflow.SavedModel": {"saved_model_schema_version"},
}


@pytest.fixture(scope="module")
def peer_pool():
    from google.protobuf import descriptor_pool

    for module in (
        "tensorflow_serving.apis.prediction_log_pb2",
        "tensorflow_serving.apis.prediction_service_pb2",
        "tensorflow_serving.apis.model_service_pb2",
        "tensorflow_serving.config.model_server_config_pb2",
        "tensorflow.core.protobuf.meta_graph_pb2",
        "tensorflow.core.protobuf.saved_model_pb2",
        "tensorflow.core.example.example_pb2",
    ):
        import_module(module)
    return descriptor_pool.Default()


def shape_of(message):
    """What a message means on the wire and in text: {field: (number, type, label, ...)}."""
    return {
        field.name: (
            field.number,
            field.type,
            field.is_repeated,
            field.message_type.full_name if field.message_type else None,
            field.enum_type.full_name if field.enum_type else None,
            field.containing_oneof.name if field.containing_oneof else None,
        )
        for field in message.fields
    }


def compare(mine, peer):
    expected = shape_of(peer)
    left_out = {expected.pop(name)[3] for name in LEFT_OUT.get(mine.full_name, ())}
    found = shape_of(mine)
    numbers = {found.pop(name)[0] for name in ADDED.get(mine.full_name, ())}
    assert all(number > 1000 for number in numbers)  # far from those that upstream may come to use
    assert found == expected, mine.full_name
    assert set(mine.nested_types_by_name) == {
        name for name, one in peer.nested_types_by_name.items() if one.full_name not in left_out
    }
    for name, nested in mine.nested_types_by_name.items():
        compare(nested, peer.nested_types_by_name[name])
    for enum in mine.enum_types:
        assert values(enum) == values(peer.enum_types_by_name[enum.name])


def values(enum):
    return {value.name: value.number for value in enum.values}


@pytest.mark.parametrize("module", [name for name in MODULES if name not in WITHOUT_PEER])
def test_same_as_upstream(module, peer_pool):
    file = import_module(f"gru_serving.protos.{module}").DESCRIPTOR
    assert file.message_types_by_name or file.enum_types_by_name or file.services_by_name
    for message in file.message_types_by_name.values():
        compare(message, peer_pool.FindMessageTypeByName(message.full_name))
    for enum in file.enum_types_by_name.values():
        assert values(enum) == values(peer_pool.FindEnumTypeByName(enum.full_name))
    for service in file.services_by_name.values():
        peer = peer_pool.FindServiceByName(service.full_name)
        assert [(m.name, m.input_type.full_name, m.output_type.full_name) for m in service.methods]
        assert {
            (m.name, m.input_type.full_name, m.output_type.full_name) for m in service.methods
        } == {(m.name, m.input_type.full_name, m.output_type.full_name) for m in peer.methods}


def test_upstream_reads_what_we_write(peer_pool):
    from tensorflow_serving.apis import predict_pb2 as peer

    from gru_serving.protos import predict_pb2

    request = predict_pb2.PredictRequest(output_filter=["y"])
    request.model_spec.name = "m"
    request.model_spec.version.value = 3
    request.inputs["x"].float_val.extend([1.5, -2.0])
    assert str(peer.PredictRequest.FromString(request.SerializeToString())) == str(request)


def test_upstream_refuses_our_addition_in_a_file_and_skips_it_in_a_message(peer_pool):
    from tensorflow_serving.config import model_server_config_pb2 as peer

    from gru_serving.protos.model_server_config_pb2 import ModelServerConfig

    text = 'model_config_list { config { name: "m" shadow { version: 2 share: 1 } } }'
    with pytest.raises(text_format.ParseError, match='no field named "shadow"'):
        text_format.Parse(text, peer.ModelServerConfig())
    message = text_format.Parse(text, ModelServerConfig(), descriptor_pool=pool.POOL)
    read = peer.ModelServerConfig.FromString(message.SerializeToString())
    assert read.model_config_list.config[0].name == "m"
    assert read.SerializeToString() == message.SerializeToString()


def test_any_names_the_upstream_type():
    from gru_serving.protos import get_model_metadata_pb2

    response = get_model_metadata_pb2.GetModelMetadataResponse()
    response.metadata["signature_def"].Pack(get_model_metadata_pb2.SignatureDefMap())
    url = response.metadata["signature_def"].type_url
    assert url == "type.googleapis.com/tensorflow.serving.SignatureDefMap"


@pytest.mark.parametrize(
    ("module", "message", "text"),
    [
        (
            "monitoring_config_pb2",
            "MonitoringConfig",
            'prometheus_config { enable: true path: "/m" }',
        ),
        ("ssl_config_pb2", "SSLConfig", 'server_key: "k" server_cert: "c" client_verify: true'),
        (
            "batching_parameters_pb2",
            "BatchingParameters",
            "max_batch_size { value: 8 } allowed_batch_sizes: 4, allowed_batch_sizes: 8",
        ),
    ],
)
def test_text_files_without_a_peer(module, message, text):
    cls = getattr(import_module(f"gru_serving.protos.{module}"), message)
    parsed = text_format.Parse(text, cls(), descriptor_pool=pool.POOL)
    assert cls.FromString(parsed.SerializeToString()) == parsed
    numbers = {field.name: field.number for field in cls.DESCRIPTOR.fields}
    assert list(numbers.values()) == list(range(1, len(numbers) + 1))


def test_committed_code_is_what_regenerate_writes():
    regenerate = pytest.importorskip("gru_serving.protos.regenerate")
    pytest.importorskip("grpc_tools")
    files = regenerate.descriptors()
    assert {Path(file.name).stem + "_pb2" for file in files} == set(MODULES)
    for file in files:
        committed = Path(regenerate.HERE, Path(file.name).stem + "_pb2.py").read_text()
        assert committed == regenerate.module_text(file)


BOTH = (
    "from gru_serving.protos import predict_pb2, prediction_log_pb2, model_service_pb2",
    "import tensorflow; from tensorflow_serving.apis import predict_pb2, prediction_log_pb2",
)


@pytest.mark.slow
@pytest.mark.parametrize("order", [BOTH, BOTH[::-1]], ids=["ours first", "theirs first"])
def test_both_in_one_process(order):
    program = "; ".join(order)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_profile_options_same_as_tensorflows():
    """The part of the profiler's messages that TensorFlow's package contains."""
    from tensorflow.tsl.profiler.protobuf import profiler_options_pb2

    from gru_serving.protos.profiler_service_pb2 import ProfileOptions

    theirs = profiler_options_pb2.ProfileOptions.DESCRIPTOR.fields_by_name
    for field in ProfileOptions.DESCRIPTOR.fields:
        assert (field.number, field.type) == (theirs[field.name].number, theirs[field.name].type)
