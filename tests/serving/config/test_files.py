"""Text files in; dataclasses or TF Serving's error texts out."""

from pathlib import Path

import pytest

from gru_serving.config import files as config_files
from gru_serving.config.files import ServedModel, ShadowTarget, VersionPolicy, read_model_config
from gru_serving.errors import InvalidArgument, NotFound
from gru_serving.protos.batching_parameters_pb2 import BatchingParameters
from gru_serving.protos.monitoring_config_pb2 import MonitoringConfig
from gru_serving.protos.ssl_config_pb2 import SSLConfig

GOOD = """
# a comment
model_config_list: {
  config: { name: "a", base_path: "/m/a", model_platform: "tensorflow",
            model_version_policy: { latest: { num_versions: 2 } } },
  config { name: "b" base_path: "file:///m/b" model_type: TENSORFLOW
           model_version_policy { specific { versions: 3 versions: 5 } }
           version_labels { key: "stable" value: 3 } }
  config { name: "c" base_path: "/m/c" model_platform: "tensorflow"
           model_version_policy { all {} } }
  config { name: "d" base_path: "/m/d" model_platform: "tensorflow"
           model_version_policy { latest {} } }
}
"""


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "file.config"
        path.write_text(text)
        return str(path)

    return write


def test_models(write):
    assert read_model_config(write(GOOD)) == [
        ServedModel("a", Path("/m/a"), VersionPolicy("latest", 2)),
        ServedModel("b", Path("/m/b"), VersionPolicy("specific", versions=(3, 5)), {"stable": 3}),
        ServedModel("c", Path("/m/c"), VersionPolicy("all")),
        ServedModel("d", Path("/m/d"), VersionPolicy("latest", 1)),
    ]


LABELS = 'version_labels { key: "canary" value: 4 }'


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("", None),
        ("shadow { version: 2 share: 0.5 }", ShadowTarget(2, 0.5)),
        ("shadow { version: 2 share: 0 tolerance: 0 }", ShadowTarget(2, 0.0, 0.0)),
        (f'{LABELS} shadow {{ label: "canary" share: 1 }}', ShadowTarget(4, 1.0)),
    ],
)
def test_shadow(write, fields, expected):
    (model,) = read_model_config(write(one(f'name: "m" base_path: "/m" {TF} {fields}')))
    assert model.shadow == expected


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ("share: 1", "expected a version or a label; got neither"),
        ('share: 1 label: "beta"', "expected one of the version_labels ['canary']; got the label"),
        ("share: 1 version: -2", "expected a version from 0; got -2"),
        ("version: 2", "expected a share of the requests, 0 to 1; got none"),
        ("version: 2 share: 1.5", "expected a share of the requests, 0 to 1; got 1.5"),
        ("version: 2 share: nan", "expected a share of the requests, 0 to 1; got nan"),
        ("version: 2 share: 1 tolerance: -1", "expected a tolerance from 0; got -1"),
        ("version: 2 share: 1 tolerance: nan", "expected a tolerance from 0; got nan"),
    ],
)
def test_shadow_refused(write, fields, said):
    text = one(f'name: "m" base_path: "/m" {TF} {LABELS} shadow {{ {fields} }}')
    with pytest.raises(InvalidArgument, match="shadow of model m: ") as error:
        read_model_config(write(text))
    assert said in error.value.message


def one(fields):
    return f"model_config_list {{ config {{ {fields} }} }}"


TF = 'model_platform: "tensorflow"'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (one(f'name: "m" base_path: "rel" {TF}'),
         "Expected model m to have an absolute path or URI; got base_path()=rel"),
        (one(f'name: "m" base_path: "/a\\000b" {TF}'),
         r"model m: a path cannot contain a NUL character; got base_path()='/a\x00b'"),
        (one(f'name: "m" base_path: "/a" {TF}').replace("} }", f'}} config {{ name: "m" '
             f'base_path: "/b" {TF} }} }}'),
         "Illegal to list model m multiple times in config list"),
        (one('name: "m" base_path: "/a"'),
         "Illegal setting neither ModelServerConfig::model_type (deprecated) nor "
         "ModelServerConfig::model_platform, model name is m"),
        (one(f'name: "m" base_path: "/a" model_type: TENSORFLOW {TF}'),
         "Illegal setting both ModelServerConfig::model_type (deprecated) and "
         "ModelServerConfig::model_platform, model name is m"),
        (one('name: "m" base_path: "/a" model_platform: "torch"'),
         "Model m requests unsupported platform torch"),
        (one('name: "m" base_path: "/a" model_type: OTHER'),
         "ModelServerConfig::model_type choice 2 not supported."),
        # Of several errors, names come before paths, and paths before platforms.
        ('model_config_list { config { name: "a" base_path: "rel" } config { name: "b" } '
         'config { name: "b" } }', "Illegal to list model b multiple times in config list"),
        ('model_config_list { config { name: "a" base_path: "/a" model_platform: "x" } '
         'config { name: "b" base_path: "rel" } }',
         "Expected model b to have an absolute path or URI; got base_path()=rel"),
        ("custom_model_config {}", "ModelServer does not yet support custom model config."),
        (one(f'name: "m" base_path: "/a" {TF} logging_config {{}}'),
         "No request-logger-creator provided."),
    ],
)  # fmt: skip
def test_refused(write, text, message):
    with pytest.raises(InvalidArgument) as caught:
        read_model_config(write(text))
    assert str(caught.value) == message


@pytest.mark.parametrize("escape", [r"\ ", r"\d", r"\N{SNOWMAN}", r"\\\8"])
def test_escapes_that_the_original_does_not_know_are_refused(write, capsys, escape):
    path = write(f'model_config_list {{\n  config {{ name: "{escape}" base_path: "/a" {TF} }} }}')
    with pytest.raises(InvalidArgument, match="Invalid protobuf file"):
        read_model_config(path)
    said = capsys.readouterr().err
    assert "ModelServerConfig: 2:18: " in said
    assert "Invalid escape sequence in string literal" in said


def test_escapes_are_read(write):
    path = write(one(rf'name: "\\ \" \' \n \x41 \101 \u00e9 é" base_path: "/a" {TF}'))
    assert read_model_config(path)[0].name == "\\ \" ' \n A A é é"


@pytest.mark.parametrize("scheme", ["gs://bucket/m", "s3://m"])
def test_remote_paths_are_refused_by_name(write, scheme):
    with pytest.raises(InvalidArgument, match=scheme):
        read_model_config(write(one(f'name: "m" base_path: "{scheme}" {TF}')))


def test_parse_error_names_line_and_column_on_stderr(write, capsys):
    path = write("model_config_list {\n  config { nam: 3 }\n}")
    with pytest.raises(InvalidArgument) as caught:
        read_model_config(path)
    assert str(caught.value) == f"Invalid protobuf file: '{path}'"
    said = capsys.readouterr().err
    assert said.startswith("Error parsing text-format tensorflow.serving.ModelServerConfig: 2:12: ")
    assert "nam" in said


def test_missing_file():
    with pytest.raises(NotFound, match=r"^/nix; No such file or directory"):
        read_model_config("/nix")


def test_platform_of_a_known_model(write):
    path = write(one('name: "m" base_path: "/a" model_platform: "torch"'))
    with pytest.raises(InvalidArgument) as caught:
        read_model_config(path, known=["m"])
    assert str(caught.value) == (
        "Illegal to change a model's platform. For model m platform was tensorflow and new "
        "platform requested is torch"
    )


def test_no_list_is_not_an_empty_list(write):
    assert read_model_config(write("")) is None
    assert read_model_config(write("model_config_list {}")) == []


def test_other_files(write):
    monitoring = config_files.read_text_proto(
        write("prometheus_config { enable: true }"), MonitoringConfig()
    )
    assert monitoring.prometheus_config.enable
    ssl = config_files.read_text_proto(write('server_key: "k" server_cert: "c"'), SSLConfig())
    assert (ssl.server_key, ssl.client_verify) == ("k", False)
    batching = config_files.read_text_proto(
        write("max_batch_size { value: 128 } allowed_batch_sizes: 1 allowed_batch_sizes: 128"),
        BatchingParameters(),
    )
    assert batching.max_batch_size.value == 128
    assert not batching.HasField("batch_timeout_micros")
    with pytest.raises(InvalidArgument):
        config_files.read_text_proto(write("client_verify: 7"), SSLConfig())


LOGGED = """model_config_list {{ config {{
  name: "m" base_path: "/m" model_platform: "tensorflow"
  logging_config {{ {} }}
}} }}"""


def test_logging_config(write):
    text = 'sampling_config { sampling_rate: 0.25 } log_collector_config { filename_prefix: "p" }'
    path = write(LOGGED.format(text))
    (model,) = read_model_config(path, may_log=True)
    assert model.logging.sampling_config.sampling_rate == 0.25
    assert model.logging.log_collector_config.filename_prefix == "p"
    with pytest.raises(InvalidArgument, match=r"^No request-logger-creator provided\.$"):
        read_model_config(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sampling_config { sampling_rate: 2 }", "sampling_rate must be between 0 and 1; got 2.0"),
        (
            'log_collector_config { type: "http" }',
            'log_collector_config.type must be "tfrecord" or empty; got "http"',
        ),
        (
            'log_collector_config { filename_prefix: "/x" }',
            "must stay inside --prediction_log_directory; got",
        ),
        ('log_collector_config { filename_prefix: "a/../../x" }', "must stay inside"),
    ],
)
def test_refused_logging_configs(write, text, message):
    with pytest.raises(InvalidArgument, match=f"logging_config of model m: .*{message}"):
        read_model_config(write(LOGGED.format(text)), may_log=True)
