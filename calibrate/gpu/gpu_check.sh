#!/bin/sh
# Every check and measurement on a machine with a GPU, in under eight minutes, into one folder. No network.
#
#   calibrate/gpu/gpu_check.sh OUT                  on one CUDA GPU
#   calibrate/gpu/gpu_check.sh OUT --scale tiny     a rehearsal of every stage on a CPU
#
# Needs a Python (PYTHON, default python3) with torch 2.11 or newer, triton 3.6 or newer, numpy, pandas, scipy, PyYAML
# and matplotlib. OUT/summary.md is rewritten after every stage.
set -eu
test $# -ge 1 || { echo "usage: $0 OUT [--scale full|tiny] [--model NAME] [--seconds N]" >&2; exit 2; }
out=$1
shift
here=$(cd "$(dirname "$0")/../.." && pwd)
case " $* " in
*" tiny "*) TRITON_INTERPRET=1; export TRITON_INTERPRET ;;
esac
PYTHONPATH="$here${PYTHONPATH:+:$PYTHONPATH}" exec "${PYTHON:-python3}" -m calibrate.gpu.gpu_check --out "$out" "$@"
