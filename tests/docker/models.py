"""Two small models, trained and exported by the training image."""

import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor

TRAINING = ("--set=reviews=600", "--epochs=1", "--units=16", "--set=embedding_size=16")
HARDENED = ("--init", "--network=none", "--read-only", "--tmpfs=/tmp", "--cap-drop=ALL")
NAMES = ("served", "next")


def make_models(docker, images, build, figures):
    """The folder with `served/sentiment/1` and `next/sentiment/1`, made once per image."""
    image = docker("image", "inspect", "--format={{.Id}}", images["training"]).strip()
    trained = build / "trained" / image.removeprefix("sha256:")[:12]
    if not trained.exists():
        aside = build / "training"
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        train(docker, image, aside, figures)
        trained.parent.mkdir(exist_ok=True)
        aside.rename(trained)
    root = build / "models"
    shutil.rmtree(root, ignore_errors=True)
    for name in NAMES:
        shutil.copytree(trained / name, root / name)
    return root


def train(docker, image, root, figures):
    """Train and export with two seeds, at the same time."""
    user = f"--user={os.getuid()}:{os.getgid()}"
    run = ("run", "--rm", *HARDENED, user, f"--volume={root}:/work")

    def make(seed, name):
        folders = ("--runs-dir=runs", f"--name={name}")
        docker(*run, image, "sentiment", *TRAINING, *folders, f"--seed={seed}")
        export = ("export", f"runs/{name}", f"--to={name}/sentiment")
        docker(*run, "--entrypoint=gru-serve", image, *export)

    begun = time.monotonic()
    with ThreadPoolExecutor() as pool:
        list(pool.map(make, range(len(NAMES)), NAMES))
    figures(f"training image: two models trained and exported in {time.monotonic() - begun:.0f} s")
