#!/usr/bin/env bash
# Records a program of 1.6 million kernels with nsys and races `nvprof-tools attribute` against `nsys stats` on its export.
#
#   benchmarks/race/run.sh [FOLDER]
#
# From anywhere in a checkout, on a machine with a GPU, nvcc, g++, nsys and a python3 that has numpy, pyarrow and click.
# All files go to FOLDER (default: a new temporary one, removed at the end; 1 GB): results.json, the steps' outputs, the
# recording. Every step has its limit, and the whole ends within 200 s; what fails is left out and the rest goes on.
# Environment: NSYS, NVCC, PYTHON name the programs; PARTITIONS (30000) and RECORD_SECONDS (35) size the recording.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
began=$SECONDS
total=190

if [ $# -ge 1 ]; then
  mkdir -p "$1" && folder=$(cd "$1" && pwd) || exit 2
else
  folder=$(mktemp -d) || exit 2
  trap 'rm -rf "$folder"' EXIT
fi
PYTHON=${PYTHON:-python3}
NVCC=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
results=$folder/results.jsonl
: >"$results"

# step NAME LIMIT COMMAND…: never past the end of the whole, never a reason to stop.
step() {
  local name=$1 limit=$2 left=$((total - (SECONDS - began)))
  shift 2
  [ "$left" -lt "$limit" ] && limit=$left
  [ "$limit" -lt 1 ] && limit=1
  "$PYTHON" "$here/timed.py" "$results" "$name" "$limit" "$folder/${name//[ \/]/_}.out" -- "$@"
}

# --- nsys: the one that is named, the one on the path, the one that comes with Nsight Compute
find_nsys() {
  [ -n "${NSYS:-}" ] && return
  NSYS=$(command -v nsys) && return
  NSYS=$(timeout 20 find / -path '*nsight-compute*/host/target-linux-x64/nsys' -not -path '/proc/*' 2>/dev/null | head -1)
  [ -n "$NSYS" ] || return
  # Its importer is looked for under a name that Nsight Compute's folder does not have.
  local host
  host=$(dirname "$(dirname "$NSYS")")
  [ -e "$host/host-linux-x64" ] || ln -sfn linux-desktop-glibc_2_11_3-x64 "$host/host-linux-x64"
}
find_nsys
NSYS=${NSYS:-nsys}

# Libraries and wheels that were brought along, where there are any: only for what needs them.
libraries=${LD_LIBRARY_PATH:-}
if compgen -G "$root/.libs/*.deb" >/dev/null; then
  for package in "$root"/.libs/*.deb; do timeout 20 dpkg -x "$package" "$folder/libs"; done
  libraries=$folder/libs/usr/lib/x86_64-linux-gnu:$folder/libs/lib/x86_64-linux-gnu${libraries:+:$libraries}
fi
path=$root
if compgen -G "$root/.whl/*.whl" >/dev/null; then
  timeout 60 "$PYTHON" -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target "$folder/site" \
    "$root"/.whl/*.whl >"$folder/wheels.out" 2>&1 && path=$root:$folder/site
fi
tool() { step "$1" "$2" env LD_LIBRARY_PATH="$libraries" "${@:3}"; }

# --- build: the program, and our native library
headers=/usr/local/cuda/include
[ -e "$(dirname "$(dirname "$NVCC")")/include/nvtx3/nvToolsExt.h" ] && headers=$(dirname "$(dirname "$NVCC")")/include
if [ ! -e "$headers/nvtx3/nvToolsExt.h" ]; then
  found=$(timeout 20 find / -path '*/nvtx3/nvToolsExt.h' -not -path '/proc/*' 2>/dev/null | head -1)
  [ -n "$found" ] && headers=$(dirname "$(dirname "$found")")
fi
step "build program" 60 "$NVCC" -O2 -std=c++17 -arch="${CUDA_ARCH:-native}" -I"$headers" -o "$folder/many_kernels" \
  "$here/many_kernels.cu" -ldl
mapfile -t sources < <(find "$root/nvprof_tools/native" -name '*.cpp' | sort)
step "build library" 60 "${CXX:-g++}" -std=c++17 -O2 -fPIC -shared -fvisibility=hidden -pthread "${sources[@]}" \
  -o "$folder/libnvprof_native.so"
[ -e "$folder/libnvprof_native.so" ] && export NVPROF_TOOLS_NATIVE=$folder/libnvprof_native.so

# As an installation would leave it.
unset PYTHONDONTWRITEBYTECODE
timeout 60 "$PYTHON" -m compileall -q "$root/nvprof_tools" "$root/nvtx_markers" >/dev/null 2>&1

# --- record and export
tool "nsys version" 20 "$NSYS" --version
tool "record" 100 "$NSYS" profile -t cuda,nvtx -s none --cpuctxsw=none --force-overwrite=true -o "$folder/race" \
  "$folder/many_kernels" "$folder/race.log" "${PARTITIONS:-30000}" "${RECORD_SECONDS:-35}"
tool "export" 60 "$NSYS" export --type=sqlite --force-overwrite=true --output="$folder/race.sqlite" "$folder/race.nsys-rep"
cat "$folder/race.sqlite" >/dev/null 2>&1 # into the page cache, for all alike

# --- race: theirs and ours in turn
attribute() {
  step "nvprof-tools attribute" 60 env PYTHONPATH="$path${PYTHONPATH:+:$PYTHONPATH}" "$PYTHON" -c \
    'from nvprof_tools.cli.main import main; main()' attribute "$folder/race.sqlite" --log "$folder/race.log"
}
for report in nvtx_gpu_proj_sum cuda_api_sum gpu_gaps; do
  attribute
  tool "nsys stats $report" 60 "$NSYS" stats -r "$report" -f csv "$folder/race.sqlite"
done

"$PYTHON" "$here/summary.py" "$results" "$folder/race.sqlite" "$folder/race.log" | tee "$folder/results.json"
cat "$folder/nsys_version.out" "$folder/record.out" 2>/dev/null | tail -8 >&2
head -30 "$folder/nvprof-tools_attribute.out" >&2
for report in nvtx_gpu_proj_sum cuda_api_sum gpu_gaps; do
  echo "--- $report" >&2
  head -6 "$folder/nsys_stats_$report.out" 2>/dev/null | cut -c1-200 >&2
done
echo "whole: $((SECONDS - began)) s" >&2
