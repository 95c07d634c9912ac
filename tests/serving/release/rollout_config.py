"""A configuration of two models, and what the version behind a label answers."""

from gru_serving.client import connect

CONFIG = """
model_config_list {{
  config {{
    name: "m" base_path: "{base}/m" model_platform: "tensorflow"
    model_version_policy {{ {policy} }}
  }}
  config {{ name: "other" base_path: "{base}/other" model_platform: "tensorflow" }}
}}
"""


def write(path, bases, policy="specific { versions: 1 }"):
    path.write_text(CONFIG.format(base=bases, policy=policy))
    return path


def answer(url, label):
    inputs = {"x": [[1, 0, 0]], "b": [[0]]}
    with connect(url) as client:
        return client.predict(inputs, "m", label=label)["y"][0, 0]
