#!/usr/bin/env bash
# Runs once, when Gradescope builds the autograder's image: Python, this course's package and what it needs.
set -euo pipefail

source=/autograder/source
home=/opt/inferlab
export DEBIAN_FRONTEND=noninteractive

# Hidden tests lie here: from now on for root only.
chmod -R go-rwx "$source"

apt-get update -qq
for python in python3.13 python3.12 python3.11; do
    if apt-get install -y -qq --no-install-recommends "$python" "$python-venv"; then
        break
    fi
done
command -v "$python" >/dev/null || { echo "no Python of 3.11 or newer: choose a newer base image" >&2; exit 1; }

"$python" -m venv "$home"
# A CPU build of PyTorch is enough, and much smaller.
"$home/bin/pip" install --quiet --no-cache-dir -c "$source/constraints.txt" torch \
    --index-url https://download.pytorch.org/whl/cpu
"$home/bin/pip" install --quiet --no-cache-dir -c "$source/constraints.txt" "$(echo "$source"/inferlab-*.whl)[course]"
rm -f "$source"/inferlab-*.whl

# Learners' code runs as a user that owns nothing: it must be able to read the packages.
chmod -R go+rX "$home"
# What the first import makes (compiled files, the list of fonts) is made now, not while somebody waits.
"$home/bin/python" -c "import inferlab.grading.gradescope.run, matplotlib.pyplot"
