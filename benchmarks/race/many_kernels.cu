// A recording of many tiny kernels: two workers prove partitions on one GPU under a mutex, each with 54 kernels, 132 CUDA
// calls and 10 NVTX ranges; the log has six lines a partition. What is computed does not matter and is not checked.
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#define CUDA(call)                                                                              \
  do {                                                                                          \
    cudaError_t error = (call);                                                                 \
    if (error != cudaSuccess) {                                                                 \
      std::fprintf(stderr, "many_kernels: %s: %s\n", #call, cudaGetErrorString(error));         \
      std::_Exit(3);                                                                            \
    }                                                                                           \
  } while (0)

namespace {

constexpr int WORKERS = 2, KERNELS = 54, EVENTS = 8, BUFFERS = 3, PARTITIONS_A_JOB = 10;
constexpr int WORDS = 1024;
constexpr size_t BYTES = WORDS * sizeof(unsigned);

template <int Name>
__global__ void step(unsigned* a, unsigned salt) {
  unsigned i = threadIdx.x;
  a[i] = a[i] * 1664525u + salt + Name;
}

using Kernel = void (*)(unsigned*, unsigned);
const Kernel NAMES[] = {step<0>, step<1>, step<2>, step<3>, step<4>, step<5>, step<6>, step<7>, step<8>, step<9>};

struct Range {
  explicit Range(const char* name) { nvtxRangePushA(name); }
  ~Range() { nvtxRangePop(); }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

long long now(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return t.tv_sec * 1'000'000'000ll + t.tv_nsec;
}

class Log {
 public:
  bool open(const char* path) {
    file_ = std::fopen(path, "w");
    if (!file_) return false;
    epoch_ = now(CLOCK_MONOTONIC);
    long long wall = now(CLOCK_REALTIME);
    time_t seconds = wall / 1'000'000'000;
    tm utc{};
    gmtime_r(&seconds, &utc);
    char text[64];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
    std::fprintf(file_, "%s.%06lldZ  INFO cuzk_core::engine: starting cuzk engine pipeline_enabled=true\n", text,
                 wall / 1000 % 1'000'000);
    return true;
  }
  long long ms() const { return (now(CLOCK_MONOTONIC) - epoch_) / 1'000'000; }
  void event(const char* name, int number, const std::string& before = "", const std::string& after = "") {
    std::lock_guard<std::mutex> guard(lock_);
    int job = number / PARTITIONS_A_JOB;
    std::fprintf(file_, "TIMELINE,%lld,%s,%08x-5eed-4000-8000-%012x,%spartition=%d%s\n", ms(), name, job, job,
                 before.c_str(), number % PARTITIONS_A_JOB, after.c_str());
  }
  bool close() { return std::fclose(file_) == 0; }

 private:
  std::FILE* file_ = nullptr;
  std::mutex lock_;
  long long epoch_ = 0;
};

class Channel {
 public:
  void send(int item) {
    std::unique_lock<std::mutex> guard(lock_);
    changed_.wait(guard, [&] { return items_.size() < 4; });
    items_.push_back(item);
    changed_.notify_all();
  }
  bool receive(int& item) {
    std::unique_lock<std::mutex> guard(lock_);
    changed_.wait(guard, [&] { return !items_.empty() || closed_; });
    if (items_.empty()) return false;
    item = items_.front();
    items_.pop_front();
    changed_.notify_all();
    return true;
  }
  void close() {
    std::lock_guard<std::mutex> guard(lock_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<int> items_;
  bool closed_ = false;
};

Log log_;
std::mutex gpu_mutex;

struct Worker {
  int number;
  unsigned* host;
  cudaStream_t stream;
  cudaEvent_t events[EVENTS];

  void compute(unsigned* const* device, int partition) {
    int launched = 0;
    for (const char* stage : {"ntt_msm_h", "tail_msm"}) {
      Range range(stage);
      for (int k = 0; k < KERNELS / 2; ++k, ++launched) {
        if (launched % 7 == 0) CUDA(cudaEventRecord(events[launched / 7 % EVENTS], stream));
        CUDA(cudaStreamWaitEvent(stream, events[launched / 7 % EVENTS], 0));
        unsigned* a = device[launched % BUFFERS];
        unsigned salt = static_cast<unsigned>(partition + launched);
        void* arguments[] = {&a, &salt};
        int name = launched % static_cast<int>(sizeof NAMES / sizeof *NAMES);
        CUDA(cudaLaunchKernel(reinterpret_cast<const void*>(NAMES[name]), dim3(1), dim3(32 + 32 * (name % 4)), arguments, 0,
                              stream));
      }
    }
    CUDA(cudaMemcpyAsync(host, device[0], BYTES, cudaMemcpyDeviceToHost, stream));
    CUDA(cudaStreamSynchronize(stream));
  }

  void prove(int partition) {
    Range whole("gpu_prove");
    {
      Range range("host_register");
      CUDA(cudaHostRegister(host, BYTES * BUFFERS, cudaHostRegisterDefault));
    }
    {
      nvtxRangePushA("mutex_acquire");
      gpu_mutex.lock();
      nvtxRangePop();
      std::lock_guard<std::mutex> held(gpu_mutex, std::adopt_lock);
      Range range("gpu_mutex_held");
      unsigned* device[BUFFERS];
      {
        Range asked("mem_info_alloc");
        CUDA(cudaDeviceSynchronize());
        for (unsigned*& d : device) CUDA(cudaMalloc(&d, BYTES));
      }
      {
        Range upload("upload");
        for (int i = 0; i < BUFFERS; ++i)
          CUDA(cudaMemcpyAsync(device[i], host + i * WORDS, BYTES, cudaMemcpyHostToDevice, stream));
        for (int i = 1; i < BUFFERS; ++i) CUDA(cudaMemsetAsync(device[i], 0, BYTES / 2, stream));
      }
      compute(device, partition);
      Range freed("free");
      for (unsigned* d : device) CUDA(cudaFree(d));
    }
    Range range("host_unregister");
    CUDA(cudaHostUnregister(host));
  }

  void run(Channel& channel) {
    CUDA(cudaSetDevice(0));
    host = static_cast<unsigned*>(std::aligned_alloc(4096, BYTES * BUFFERS));
    std::memset(host, 1, BYTES * BUFFERS);
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (cudaEvent_t& event : events) CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    const std::string who = "worker=" + std::to_string(number) + ",";
    for (int partition; channel.receive(partition);) {
      log_.event("GPU_PICKUP", partition, who);
      log_.event("GPU_START", partition, who);
      long long start = now(CLOCK_MONOTONIC);
      prove(partition);
      log_.event("GPU_END", partition, who, ",gpu_ms=" + std::to_string((now(CLOCK_MONOTONIC) - start) / 1'000'000));
    }
    for (cudaEvent_t& event : events) CUDA(cudaEventDestroy(event));
    CUDA(cudaStreamDestroy(stream));
    std::free(host);
  }
};

}  // namespace

// many_kernels LOG PARTITIONS SECONDS: no partition is begun after SECONDS. Prints what was done.
int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s LOG PARTITIONS SECONDS\n", argv[0]);
    return 2;
  }
  const int partitions = std::atoi(argv[2]);
  const double seconds = std::atof(argv[3]);
  CUDA(cudaSetDevice(0));
  CUDA(cudaFree(nullptr));
  if (!log_.open(argv[1])) {
    std::fprintf(stderr, "many_kernels: cannot write %s\n", argv[1]);
    return 1;
  }
  Channel channel;
  Worker state[WORKERS];
  std::vector<std::thread> workers;
  for (int w = 0; w < WORKERS; ++w) {
    state[w].number = w;
    workers.emplace_back([&, w] { state[w].run(channel); });
  }
  const long long began = now(CLOCK_MONOTONIC);
  int done = 0;
  for (; done < partitions && now(CLOCK_MONOTONIC) - began < seconds * 1e9; ++done) {
    log_.event("SYNTH_START", done);
    log_.event("SYNTH_END", done, "", ",synth_ms=0");
    log_.event("CHAN_SEND", done);
    channel.send(done);
  }
  channel.close();
  for (std::thread& worker : workers) worker.join();
  std::printf("{\"partitions\": %d, \"kernels\": %d, \"seconds\": %.2f}\n", done, done * KERNELS,
              (now(CLOCK_MONOTONIC) - began) / 1e9);
  return log_.close() ? 0 : 1;
}
