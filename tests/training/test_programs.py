"""What XLA compiled is kept for later processes, and never harms one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gru_training import programs

TRAINING = """
from gru_training.programs import keep_programs
print(keep_programs())
from gru_training.quiet import quiet
with quiet():
    import keras, numpy as np, tensorflow as tf
    import keras_gru
    tf.config.list_physical_devices()
keras.utils.set_random_seed(0)
x = np.random.default_rng(0).normal(size=(4, 9, 3)).astype("float32")
model = keras.Sequential([keras.Input((None, 3)), keras_gru.GRU(5), keras.layers.Dense(1)])
model.compile("adam", "mse")
print([float(model.train_on_batch(x, x[:, 0, :1])) for _ in range(3)])
"""


def run(script, cache, **environment):
    """Standard output of a Python process with its cache folder there; its standard error."""
    kept = {k: v for k, v in os.environ.items() if k not in ("TF_XLA_FLAGS", "XLA_FLAGS")}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**kept, "XDG_CACHE_HOME": str(cache), "CUDA_VISIBLE_DEVICES": "-1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr


def files(store):
    return {path.name: path.stat().st_mtime_ns for path in Path(store).iterdir()}


@pytest.mark.slow
def test_a_later_process_reads_them_and_a_damaged_one_is_compiled_again(tmp_path):
    (store, first), _ = run(TRAINING, tmp_path)
    kept = files(store)
    assert len(kept) == 2, "forward and backward pass"
    (same, second), error = run(TRAINING, tmp_path)
    assert (same, second) == (store, first)
    assert files(store) == kept, "nothing was compiled"
    assert error == "", "TensorFlow reports every program that it reads as an error"
    short, changed = sorted(Path(store).iterdir())
    os.truncate(short, 1000)
    content = bytearray(changed.read_bytes())
    content[len(content) // 2] ^= 0xFF
    changed.write_bytes(content)
    (_, third), error = run(TRAINING, tmp_path)
    assert (third, error) == (first, "")
    assert sorted(Path(name).stem for name in files(store)) == [short.stem, changed.stem]
    assert not files(store).items() & kept.items(), "both were compiled"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder, and a process that has not imported TensorFlow and ends at will."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in ("TF_XLA_FLAGS", "XLA_FLAGS", programs.VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "1")
    monkeypatch.delitem(sys.modules, "tensorflow", raising=False)
    monkeypatch.setattr(programs.atexit, "register", lambda _: None)
    return tmp_path


def test_settings_of_the_user_stay(cache, monkeypatch):
    monkeypatch.setenv("TF_XLA_FLAGS", "--tf_xla_auto_jit=2")
    assert programs.keep_programs() is not None
    assert os.environ["TF_XLA_FLAGS"].split()[0] == "--tf_xla_auto_jit=2"
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "1"
    given = os.environ["TF_XLA_FLAGS"]
    assert programs.keep_programs() is None, "a folder is named already"
    assert os.environ["TF_XLA_FLAGS"] == given


@pytest.mark.parametrize("change", ["XLA_FLAGS", "version", "processor"])
def test_programs_of_another_kind_are_never_read(cache, monkeypatch, change):
    first = programs.keep_programs()
    monkeypatch.delenv("TF_XLA_FLAGS")
    if change == "XLA_FLAGS":
        monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=1")
    elif change == "version":
        monkeypatch.setattr(programs.metadata, "version", lambda _: "9.9.9")
    else:
        other = cache / "cpuinfo"
        other.write_text(programs._CPU_INFO.read_text("utf-8").replace("avx", "xva"), "utf-8")
        monkeypatch.setattr(programs, "_CPU_INFO", other)
    assert programs.keep_programs() not in (None, first)


def test_off(cache, monkeypatch):
    monkeypatch.setenv(programs.VARIABLE, "off")
    assert programs.keep_programs() is None
    assert "TF_XLA_FLAGS" not in os.environ
    assert list(cache.iterdir()) == []


def test_a_folder_of_ones_own(cache, monkeypatch):
    monkeypatch.setenv(programs.VARIABLE, str(cache / "mine"))
    assert programs.keep_programs().parent == cache / "mine"


def test_no_folder_where_none_can_be(cache, monkeypatch):
    (cache / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache / "file"))
    assert programs.keep_programs() is None
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    (cache / "keras-gru" / "programs").mkdir(parents=True)
    (cache / "keras-gru" / "programs").chmod(0o777)
    assert programs.keep_programs() is None, "others could put programs there"
    assert "TF_XLA_FLAGS" not in os.environ


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_home_that_cannot_be_written(cache, monkeypatch):
    cache.chmod(0o500)
    assert programs.keep_programs() is None
    cache.chmod(0o700)


def test_after_tensorflow_it_is_too_late(cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", programs)
    with pytest.raises(RuntimeError, match="before tensorflow, keras and keras_gru are imported"):
        programs.keep_programs()


def process(cache, script):
    """A process that does not load TensorFlow, as the parts of the cache do not need it."""
    begin = "import os, sys; from pathlib import Path\n"
    begin += "from gru_training.programs import keep_programs\n"
    begin += "store = keep_programs()\n"
    begin += "own = Path(os.environ['TF_XLA_FLAGS'].rpartition('=')[2])\n"
    return run(begin + script, cache)[0]


def test_what_a_killed_process_compiled_is_handed_on(tmp_path):
    process(tmp_path, "(own / 'a.pb').write_bytes(b'a' * 9); os._exit(0)")
    found = process(tmp_path, "print(*sorted(p.name for p in own.iterdir()))")
    assert found == ["a.pb lock"]


def test_a_running_process_keeps_what_it_reads(tmp_path):
    script = """
import subprocess
(own / "a.pb").write_bytes(b"a")
other = [sys.executable, "-c", "from gru_training.programs import *; print(keep_programs(limit=0))"]
kept = {k: v for k, v in os.environ.items() if k != "TF_XLA_FLAGS"}
print(subprocess.run(other, env=kept, capture_output=True, text=True).stdout.strip() == str(store))
print((own / "a.pb").read_bytes(), len(list(store.glob(".process-*"))))
"""
    assert process(tmp_path, script) == ["True", "b'a' 1"]
    assert process(tmp_path, "print((own / 'a.pb').read_bytes())") == ["b'a'"]


def test_the_oldest_go_first(tmp_path):
    store = Path(process(tmp_path, "print(store)")[0])
    for age, name in enumerate("abc"):
        script = f"(own / '{name}.pb').write_bytes(b'{name}' * 100)"
        process(tmp_path, script)
        (found,) = store.glob(f"{name}.pb.*")
        os.utime(found, (age, age))
    begin = "from gru_training.programs import keep_programs; keep_programs(limit=250)"
    run(begin, tmp_path)
    assert sorted(path.name[0] for path in store.iterdir()) == ["b", "c"]
