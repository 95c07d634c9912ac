#!/usr/bin/env bash
# Runs tests, and the demo if it is named, on a Python version in a new virtual environment.
#
# Usage: UV=path/to/uv tests/on_python.sh VERSION ENVIRONMENT REQUIREMENTS [demo] TEST ...
# A Python that is not found is an error, or skipped with a message if SKIP_MISSING=1 is set.
set -euo pipefail
version=$1 environment=$2 requirements=$3
shift 3

for folder in "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin; do
    PATH=$PATH:$folder
done
if ! python=$("$UV" python find --no-python-downloads --no-project "$version" 2>/dev/null); then
    echo "Python $version: not found, neither on PATH nor among pyenv's versions" >&2
    [ "${SKIP_MISSING:-}" = 1 ] && echo "SKIPPED: tests on Python $version" >&2 && exit 0
    exit 1
fi
"$UV" venv --quiet --clear --python "$python" "$environment"
"$UV" pip install --quiet --python "$environment" -r "$requirements"
"$UV" pip install --quiet --python "$environment" --no-deps --editable .
"$environment/bin/python" --version
if [ "${1:-}" = demo ]; then
    shift
    "$environment/bin/python" -m demo
fi
exec "$environment/bin/python" -m pytest -n auto --dist loadfile --no-loadscope-reorder "$@"
