"""The import packages of the distribution, and where the checkout holds them."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {
    "keras_gru": ROOT / "keras_gru",
    "gru_training": ROOT / "training" / "gru_training",
    "gru_serving": ROOT / "serving" / "gru_serving",
}


def module_name(path):
    """The dotted name of a file of a package, such as `gru_serving.codecs.png`."""
    (folder,) = (folder for folder in PACKAGES.values() if path.is_relative_to(folder))
    parts = path.relative_to(folder.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")
