// Many tiny launches: what one costs, as the program itself measures it. Usage: launches [COUNT]
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

__global__ void tiny(int* cell) {
  if (cell != nullptr) *cell += 1;
}

static double now_ns() {
  return static_cast<double>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

int main(int argc, char** argv) {
  const long count = argc > 1 ? std::atol(argv[1]) : 300000;
  const long batch = 1000;  // fewer than the driver queues before a launch blocks
  int* cell = nullptr;
  if (cudaMalloc(&cell, sizeof *cell) != cudaSuccess) return 3;
  cudaMemset(cell, 0, sizeof *cell);
  double spent = 0, best = 1e300;
  long measured = 0;
  for (long done = 0; done < count; done += batch) {
    const double start = now_ns();
    for (long i = 0; i < batch; i++) tiny<<<1, 1>>>(cell);
    const double took = now_ns() - start;
    if (cudaDeviceSynchronize() != cudaSuccess) return 4;
    if (done < count / 3) continue;  // steady state only
    spent += took;
    measured += batch;
    if (took / batch < best) best = took / batch;
  }
  int result = 0;
  cudaMemcpy(&result, cell, sizeof result, cudaMemcpyDeviceToHost);
  std::printf("{\"launches\": %ld, \"ns_per_launch\": %.1f, \"best_ns_per_launch\": %.1f, \"right\": %s}\n", count,
              spent / static_cast<double>(measured), best, result % count == 0 && result > 0 ? "true" : "false");
  cudaFree(cell);
  return 0;
}
