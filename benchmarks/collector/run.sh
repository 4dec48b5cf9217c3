#!/usr/bin/env bash
# The collector beside nsys on a machine with a GPU, nvcc and nsys.
#   run.sh smoke   [OUT]   under a minute: does it start, what does CUPTI answer, what is in the files
#   run.sh compare [OUT]   about three minutes: plain, nsys and collector in turn; prints one JSON object
# The collector runs with the markers' preload library, as `profile` starts it: nsys has the lock waits from its own hooks.
# Every step has its own limit of time and a failure of one does not stop the next.
set -u
MODE=${1:-smoke}
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
HERE=$ROOT/benchmarks/collector
OUT=${2:-${OUT:-/tmp/nvcap-bench-out}}
WORK=${WORK:-/tmp/nvcap-bench}
PRELOAD=${PRELOAD-$ROOT/nvtx_markers/libnvtx_markers_preload.so}
[ -e "$PRELOAD" ] || PRELOAD=
BUDGET=${BUDGET:-$([ "$MODE" = smoke ] && echo 55 || echo 190)}
mkdir -p "$OUT" "$WORK"
OUT=$(cd "$OUT" && pwd)
BEGAN=$(date +%s%N)
elapsed() { echo $((($(date +%s%N) - BEGAN) / 1000000000)); }
left() { local rest=$((BUDGET - $(elapsed))); echo $((rest > 1 ? rest : 1)); }
say() { printf '[%3ss] %s\n' "$(elapsed)" "$*"; }
limited() { local most=$1; shift; local rest; rest=$(left); timeout -k 2 $((most < rest ? most : rest)) "$@"; }

cd "$ROOT" || exit 1
CUDA=${CUDA_HOME:-/usr/local/cuda}
NVCC=$(command -v nvcc || echo "$CUDA/bin/nvcc")
CUDA=$(dirname "$(dirname "$(readlink -f "$NVCC")")")
PYTHON=$(command -v python3)
LIBS=$WORK/libs
if ls .libs/*.deb >/dev/null 2>&1; then
  for deb in .libs/*.deb; do dpkg -x "$deb" "$LIBS" 2>/dev/null; done
fi
NSYS_LIBS=$LIBS/usr/lib/x86_64-linux-gnu:$LIBS/lib/x86_64-linux-gnu
# The first hit below the usual places, then anywhere; a whole disk can take long, so both have a limit.
seek() {
  local hit
  hit=$(timeout 8 find /usr/local /opt /usr/lib -path "$1" -print -quit 2>/dev/null)
  [ -n "$hit" ] || hit=$(timeout 12 find / -xdev -path "$1" -not -path '/proc/*' -print -quit 2>/dev/null)
  echo "$hit"
}
NSYS=
[ "$MODE" = compare ] && NSYS=$(command -v nsys || seek '*host/target-linux-x64/nsys')
case $NSYS in
  */host/target-linux-x64/nsys)
    HOST=${NSYS%/target-linux-x64/nsys}
    [ -e "$HOST/host-linux-x64" ] || ln -sfn linux-desktop-glibc_2_11_3-x64 "$HOST/host-linux-x64" 2>/dev/null ;;
esac
CUPTI=${NVPROF_COLLECTOR_CUPTI:-}
for place in "$CUDA"/lib64/libcupti.so.1? "$CUDA"/lib64/libcupti.so "$CUDA"/extras/CUPTI/lib64/libcupti.so* "$CUDA"/targets/*/lib/libcupti.so.1?; do
  [ -z "$CUPTI" ] && [ -e "$place" ] && CUPTI=$place
done
[ -z "$CUPTI" ] && CUPTI=$(seek '*/libcupti.so.1[23]*')
CUPTI_INCLUDE=
for place in "$CUDA/extras/CUPTI/include" "$CUDA/include" "$CUDA"/targets/*/include; do
  [ -z "$CUPTI_INCLUDE" ] && [ -e "$place/cupti.h" ] && CUPTI_INCLUDE=$place
done
[ -z "$CUPTI_INCLUDE" ] && CUPTI_INCLUDE=$(dirname "$(seek '*/cupti.h')")
say "nvcc $NVCC; nsys ${NSYS:-none}; cupti ${CUPTI:-none}; headers ${CUPTI_INCLUDE:-none}"
timeout 10 nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>&1 | head -2

# Builds side by side.
LIBRARY=$WORK/libnvprof_collector.so
FLAGS=(-std=c++17 -O2 -g0 -fPIC -fvisibility=hidden -pthread -I"$CUPTI_INCLUDE" -I"$CUDA/include")
build_collector() {
  local source pids=()
  mkdir -p "$WORK/objects"
  for source in nvprof_tools/native_collector/*.cpp; do
    limited 100 g++ "${FLAGS[@]}" -c -o "$WORK/objects/$(basename "$source").o" "$source" &
    pids+=($!)
  done
  wait "${pids[@]}"
  limited 30 g++ -shared -pthread -Wl,-z,nodelete -Wl,-z,now -o "$LIBRARY" "$WORK"/objects/*.o -ldl || echo "collector: build failed"
}
build_collector > "$OUT/build-collector.log" 2>&1 &
COLLECTOR_BUILD=$!
(limited 100 "$NVCC" -O2 -std=c++17 -arch=native -o "$WORK/launches" "$HERE/launches.cu" || echo "launches: build failed") > "$OUT/build-launches.log" 2>&1 &
LAUNCHES_BUILD=$!
(limited 150 make build/prover NVCC="$NVCC" || limited 150 "$NVCC" -O2 -std=c++17 -arch=native -Invtx_markers/include -o build/prover fixtures/prover/prover.cu || echo "prover: build failed") > "$OUT/build-prover.log" 2>&1 &
PROVER_BUILD=$!
wait $COLLECTOR_BUILD $LAUNCHES_BUILD
say "built: $(ls "$LIBRARY" "$WORK/launches" 2>&1 | tr '\n' ' ')"
tail -n 5 "$OUT"/build-collector.log "$OUT"/build-launches.log
[ -e "$LIBRARY" ] || LIBRARY=$ROOT/nvprof_tools/native_collector/libnvprof_collector.so

# run NAME LIMIT TOOL PROGRAM...: one run; its wall time, exit code and words go into $OUT/NAME.*
run() {
  local name=$1 most=$2 tool=$3; shift 3
  local start end code
  mkdir -p "$OUT/$name.capture"
  start=$(date +%s%N)
  case $tool in
    plain) limited "$most" "$@" > "$OUT/$name.out" 2> "$OUT/$name.err"; code=$? ;;
    nsys) LD_LIBRARY_PATH=$NSYS_LIBS${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} limited "$most" "$NSYS" profile -t cuda,nvtx,osrt -s none --cpuctxsw=none --force-overwrite=true \
            -o "$OUT/$name" "$@" > "$OUT/$name.out" 2> "$OUT/$name.err"; code=$? ;;
    cupti*) local pm=0 debug=0
      case $tool in *pm) pm=1000 ;; esac
      [ "$MODE" = smoke ] && debug=1
      NVPROF_COLLECTOR_OUT=$OUT/$name.capture NVPROF_COLLECTOR_CUPTI=$CUPTI NVPROF_COLLECTOR_PM=$pm NVPROF_COLLECTOR_DEBUG=$debug \
        LD_PRELOAD=$PRELOAD NVPROF_COLLECTOR_DRIVER=${DRIVER_ROWS:-auto} CUDA_INJECTION64_PATH=$LIBRARY NVTX_INJECTION64_PATH=$LIBRARY \
        limited "$most" "$@" > "$OUT/$name.out" 2> "$OUT/$name.err"; code=$? ;;
  esac
  end=$(date +%s%N)
  rmdir "$OUT/$name.capture" 2>/dev/null
  printf '{"name": "%s", "tool": "%s", "wall_ms": %d, "code": %d}\n' "$name" "$tool" $(((end - start) / 1000000)) "$code" >> "$OUT/runs.jsonl"
  say "$name: $(((end - start) / 1000000)) ms, exit code $code; $(tail -c 300 "$OUT/$name.out" | tail -n 1)"
  [ "$code" -eq 0 ] || tail -n 12 "$OUT/$name.err"
}
# attribute ROUND TOOL: the log's window of one run, as JSON
attribute() {
  local name=prover-$2-$1 trace
  trace=$OUT/$name.$([ "$2" = nsys ] && echo sqlite || echo capture)
  cat "$OUT/$name.out" "$OUT/$name.err" > "$OUT/$name.log"
  PYTHONPATH=$ROOT${PYTHONPATH:+:$PYTHONPATH} limited 30 "$PYTHON" -c 'from nvprof_tools.cli.main import main; main()' attribute "$trace" \
    --log "$OUT/$name.log" --pipeline fixtures/prover/prover.toml -f json -o "$OUT/$name.json" > "$OUT/$name.attribute.log" 2>&1 ||
    say "attribution of $name: $(tail -n 2 "$OUT/$name.attribute.log" | head -c 300)"
}
export_nsys() {
  [ -e "$OUT/$1.nsys-rep" ] || return 0
  LD_LIBRARY_PATH=$NSYS_LIBS${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} limited 60 "$NSYS" export --type sqlite --force-overwrite=true -o "$OUT/$1.sqlite" "$OUT/$1.nsys-rep" > "$OUT/$1.export.log" 2>&1
  say "export of $1: exit code $?"
}
: > "$OUT/runs.jsonl"

if [ "$MODE" = smoke ]; then
  run launches-plain 10 plain "$WORK/launches" 20000
  run launches-cupti 15 cupti "$WORK/launches" 20000
  cat "$OUT/launches-cupti.err" | head -c 5000
  run launches-pm 15 cuptipm "$WORK/launches" 100000
  grep -v 'nvcap: [A-Z_0-9]*: 0 ' "$OUT/launches-pm.err" | head -c 6000
  DRIVER_ROWS=all run launches-alldriver 15 cupti "$WORK/launches" 20000
  DRIVER_ROWS=none run launches-nodriver 15 cupti "$WORK/launches" 20000
  wait $PROVER_BUILD
  tail -n 3 "$OUT/build-prover.log"
  run prover-plain 12 plain build/prover --partitions 2 --log-n 18
  run prover-cupti 12 cupti build/prover --partitions 2 --log-n 18
  tail -n 5 "$OUT/prover-cupti.err"
else
  wait $PROVER_BUILD
  tail -n 3 "$OUT/build-prover.log"
  PROVER=(build/prover --jobs 2 --partitions 20 --log-n 20)
  run warm 20 plain "$WORK/launches" 20000
  ROUNDS=${ROUNDS:-6}
  for round in $(seq "$ROUNDS"); do
    [ "$(elapsed)" -gt $((BUDGET * 6 / 10)) ] && break
    run "prover-plain-$round" 30 plain "${PROVER[@]}"
    [ -n "$NSYS" ] && run "prover-nsys-$round" 40 nsys "${PROVER[@]}"
    run "prover-cupti-$round" 30 cupti "${PROVER[@]}"
    [ "$round" -gt 3 ] && continue
    run "launches-plain-$round" 30 plain "$WORK/launches" 300000
    [ -n "$NSYS" ] && run "launches-nsys-$round" 50 nsys "$WORK/launches" 300000
    run "launches-cupti-$round" 30 cupti "$WORK/launches" 300000
  done
  run prover-pm-1 30 cuptipm "${PROVER[@]}"
  tail -n 3 "$OUT/prover-pm-1.err"
  export_nsys launches-nsys-1
  for round in $(seq "$ROUNDS"); do
    export_nsys "prover-nsys-$round"
    for tool in nsys cupti; do attribute "$round" "$tool" & done
    wait
  done
  attribute 1 pm
fi
PYTHONPATH=$ROOT${PYTHONPATH:+:$PYTHONPATH} timeout -k 2 60 "$PYTHON" "$HERE/summary.py" "$OUT" | tee "$OUT/summary.json"
say "done; all words in $OUT"
