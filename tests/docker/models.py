"""Two small models, trained and exported by the training image."""

import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor

TRAINING = ("--reviews=600", "--epochs=1", "--units=16", "--embedding-size=16")
HARDENED = ("--init", "--network=none", "--read-only", "--tmpfs=/tmp", "--cap-drop=ALL")


def train_models(docker, images, build, figures):
    """Train and export; gives the folder with `served/sentiment/1` and `next/sentiment/1`."""
    root = build / "models"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    run = (
        *("run", "--rm", *HARDENED, f"--user={os.getuid()}:{os.getgid()}"),
        f"--volume={root}:/work",
    )

    def make(name, seed):
        docker(
            *(*run, images["training"], "sentiment", *TRAINING),
            *("--runs-dir=runs", f"--name={name}", f"--seed={seed}"),
        )
        docker(
            *(*run, "--entrypoint=gru-serve", images["training"]),
            *("export", f"runs/{name}", f"--to={name}/sentiment"),
        )

    begun = time.monotonic()
    with ThreadPoolExecutor() as pool:
        list(pool.map(make, ("served", "next"), (0, 1)))
    figures(f"training image: two models trained and exported in {time.monotonic() - begun:.0f} s")
    return root
