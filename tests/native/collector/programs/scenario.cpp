// A program under the collector, without a GPU: it plays the driver, and has the stand-in for CUPTI hand out records.
#include <cupti.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <nvtx3/nvToolsExt.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "fake_cupti.h"

namespace {

std::atomic<bool> no_memory{false};

// Whether the collector's threads, and no others, are to find none.
bool starved() {
  char name[16] = "";
  return no_memory && pthread_getname_np(pthread_self(), name, sizeof name) == 0 && std::strcmp(name, "nvcap") == 0;
}

}  // namespace

void* operator new(size_t bytes) {
  void* made = starved() ? nullptr : std::malloc(bytes);
  if (made == nullptr) throw std::bad_alloc();
  return made;
}
void operator delete(void* made) noexcept { std::free(made); }
void operator delete(void* made, size_t) noexcept { std::free(made); }

namespace {

const FakeCupti* cupti;
long count = 1000;

uint32_t thread_id() { return static_cast<uint32_t>(syscall(SYS_gettid)); }

// What the driver does in cuInit.
void begin_cuda() {
  void* library = dlopen(std::getenv("CUDA_INJECTION64_PATH"), RTLD_NOW | RTLD_GLOBAL);
  auto start = reinterpret_cast<int (*)()>(library != nullptr ? dlsym(library, "InitializeInjection") : nullptr);
  if (start == nullptr || start() == 0) {
    std::fprintf(stderr, "not injected: %s\n", dlerror());
    std::exit(70);
  }
  void* fake = dlopen(std::getenv("NVPROF_COLLECTOR_CUPTI"), RTLD_NOW | RTLD_NOLOAD);
  cupti = fake != nullptr ? static_cast<const FakeCupti*>(dlsym(fake, "fake_cupti")) : nullptr;
}

template <class Record>
Record blank(CUpti_ActivityKind kind) {
  Record record;
  std::memset(&record, 0, sizeof record);
  record.kind = kind;
  return record;
}

template <class Record>
bool emit(const Record& record) {
  return cupti->emit(&record, sizeof record);
}

bool kernel(const char* name, uint64_t start, uint64_t end, uint32_t correlation) {
  auto record = blank<CUpti_ActivityKernel9>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  record.name = name;
  record.start = start;
  record.end = end;
  record.deviceId = 1;
  record.contextId = 2;
  record.streamId = 3;
  record.correlationId = correlation;
  record.gridX = 4;
  record.gridY = 5;
  record.gridZ = 6;
  record.blockX = 7;
  record.blockY = 8;
  record.blockZ = 9;
  record.registersPerThread = 10;
  record.staticSharedMemory = 11;
  record.dynamicSharedMemory = 12;
  record.graphNodeId = 13;
  record.localMemoryTotal_v2 = 14;
  return emit(record);
}

bool call(CUpti_ActivityKind kind, uint32_t cbid, uint64_t start, uint64_t end, uint32_t correlation) {
  auto record = blank<CUpti_ActivityAPI>(kind);
  record.cbid = cbid;
  record.start = start;
  record.end = end;
  record.processId = static_cast<uint32_t>(getpid());
  record.threadId = thread_id();
  record.correlationId = correlation;
  return emit(record);
}

bool runtime(uint64_t start, uint64_t end, uint32_t correlation) { return call(CUPTI_ACTIVITY_KIND_RUNTIME, 211, start, end, correlation); }
bool driver(uint64_t start, uint64_t end, uint32_t correlation) { return call(CUPTI_ACTIVITY_KIND_DRIVER, 307, start, end, correlation); }

void pause_ms(int ms) { usleep(static_cast<useconds_t>(ms) * 1000); }

// A record of each kind, out of order, one without times, one that nobody asked for.
int kinds() {
  begin_cuda();
  kernel("second", 2000, 2500, 22);
  kernel("first", 1000, 1500, 11);
  kernel("timeless", 0, 0, 33);
  auto copy = blank<CUpti_ActivityMemcpy5>(CUPTI_ACTIVITY_KIND_MEMCPY);
  copy.copyKind = 1;
  copy.srcKind = 2;
  copy.dstKind = 3;
  copy.flags = 1;
  copy.bytes = 4096;
  copy.start = 3000;
  copy.end = 3100;
  copy.correlationId = 44;
  emit(copy);
  auto peer = blank<CUpti_ActivityMemcpyPtoP4>(CUPTI_ACTIVITY_KIND_MEMCPY2);
  peer.copyKind = 10;
  peer.bytes = 8192;
  peer.start = 3200;
  peer.end = 3300;
  peer.srcDeviceId = 0;
  peer.dstDeviceId = 1;
  emit(peer);
  auto set = blank<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET);
  set.value = 255;
  set.bytes = 64;
  set.start = 3400;
  set.end = 3401;
  set.memoryKind = 3;
  emit(set);
  runtime(900, 950, 11);
  auto sync = blank<CUpti_ActivitySynchronization>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
  sync.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
  sync.start = 4000;
  sync.end = 4100;
  sync.streamId = 3;
  sync.cudaEventId = 0xFFFFFFFFu;
  emit(sync);
  auto overhead = blank<CUpti_ActivityOverhead>(CUPTI_ACTIVITY_KIND_OVERHEAD);
  overhead.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH;
  overhead.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
  overhead.objectId.pt.threadId = 77;
  overhead.start = 4200;
  overhead.end = 4300;
  emit(overhead);
  auto memory = blank<CUpti_ActivityMemory3>(CUPTI_ACTIVITY_KIND_MEMORY2);
  memory.memoryOperationType = CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
  memory.bytes = 1 << 20;
  memory.timestamp = 4400;
  memory.name = nullptr;
  emit(memory);
  auto pool = blank<CUpti_ActivityMemoryPool2>(CUPTI_ACTIVITY_KIND_MEMORY_POOL);
  pool.size = 1 << 21;
  pool.timestamp = 4500;
  pool.utilizedSize = 5;
  emit(pool);
  auto graph = blank<CUpti_ActivityGraphTrace>(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
  graph.start = 4600;
  graph.end = 4700;
  graph.graphId = 6;
  emit(graph);
  auto context = blank<CUpti_ActivityContext>(CUPTI_ACTIVITY_KIND_CONTEXT);
  context.contextId = 2;
  context.deviceId = 1;
  emit(context);
  auto device = blank<CUpti_ActivityDevice4>(CUPTI_ACTIVITY_KIND_DEVICE);
  device.id = 1;
  device.name = "A \xff device";
  device.numMultiprocessors = 132;
  device.computeCapabilityMajor = 9;
  emit(device);
  auto stream = blank<CUpti_ActivityStream>(CUPTI_ACTIVITY_KIND_STREAM);
  stream.streamId = 3;
  stream.contextId = 2;
  emit(stream);
  uint64_t unknown[8] = {CUPTI_ACTIVITY_KIND_JIT};
  cupti->emit(unknown, sizeof unknown);
  return 0;
}

// Eight threads launch and mark at once.
int threads() {
  nvtxInitialize(nullptr);  // its headers do this without order where several threads are the first
  begin_cuda();
  std::vector<std::thread> all;
  for (int thread = 0; thread < 8; thread++)
    all.emplace_back([thread] {
      nvtxNameOsThreadA(thread_id(), ("worker " + std::to_string(thread)).c_str());
      const std::string name = "kernel_" + std::to_string(thread);
      const char* kept = strdup(name.c_str());
      for (long i = 0; i < count; i++) {
        nvtxRangePushA("outer");
        nvtxRangePushA(name.c_str());
        const uint64_t start = cupti->now();
        runtime(start, start + 5, static_cast<uint32_t>(thread * count + i));
        kernel(kept, start + 10, start + 20, static_cast<uint32_t>(thread * count + i));
        nvtxRangePop();
        nvtxRangePop();
        if (i % 256 == 0) usleep(200);
      }
    });
  for (std::thread& thread : all) thread.join();
  std::printf("%llu\n", static_cast<unsigned long long>(cupti->dropped()));
  return 0;
}

// More than the pool holds, at once.
int burst() {
  begin_cuda();
  for (long i = 0; i < count; i++) kernel("burst", 10, 20, static_cast<uint32_t>(i));
  std::printf("%llu\n", static_cast<unsigned long long>(cupti->dropped()));
  return 0;
}

// Launches for a while, then is killed: what it had launched a second before is told first.
int killed() {
  begin_cuda();
  uint32_t done = 0;
  for (int round = 0; round < 16; round++) {
    for (int i = 0; i < 50; i++, done++) {
      kernel("doomed", done + 1, done + 2, done);
      nvtxRangePushA("doomed");
      nvtxRangePop();
    }
    if (round == 6) std::printf("%u\n", done), std::fflush(stdout);
    pause_ms(100);
  }
  raise(SIGKILL);
  return 0;
}

int leaves() {
  begin_cuda();
  for (int i = 0; i < 10; i++) kernel("short", 1, 2, static_cast<uint32_t>(i));
  pause_ms(1200);
  _exit(5);
}

int forks() {
  nvtxRangePushA("parent");
  pause_ms(150);  // AddressSanitizer's allocator, unlike the C library's, is not made for forks while others are in it
  const pid_t child = fork();
  if (child == 0) {
    nvtxRangePushA("child's, into nothing");
    nvtxRangePop();
    std::exit(7);
  }
  int state = 0;
  waitpid(child, &state, 0);
  const pid_t second = fork();
  if (second == 0) {
    begin_cuda();  // the parent had not: the child may
    nvtxRangePushA("child's own");
    nvtxRangePop();
    kernel("child", 1, 2, 1);
    std::exit(8);
  }
  int other = 0;
  waitpid(second, &other, 0);
  begin_cuda();
  kernel("parent", 1, 2, 1);
  nvtxRangePop();
  std::printf("%d %d %d\n", WEXITSTATUS(state), WEXITSTATUS(other), static_cast<int>(second));
  return 0;
}

int execs(char** arguments) {
  nvtxMarkA("before");
  pause_ms(500);
  char next[] = "mark";
  char* again[] = {arguments[0], next, nullptr};
  execv("/proc/self/exe", again);
  return 71;
}

int mark() {
  nvtxMarkA("after");
  return 0;
}

int ranges() {
  nvtxDomainHandle_t domain = nvtxDomainCreateA("a domain");
  nvtxStringHandle_t text = nvtxDomainRegisterStringA(domain, "registered");
  nvtxDomainNameCategoryA(domain, 3, "three");
  nvtxNameCategoryA(3, "three of none");
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.category = 3;
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = text;
  event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  event.payload.ullValue = 0x123456789abcdefULL;
  event.colorType = NVTX_COLOR_ARGB;
  event.color = 0xff00ff00;
  int level = nvtxDomainRangePushEx(domain, &event);
  level = level * 10 + nvtxRangePushW(L"wide \u00e4\u4e2d\U0001f600");
  level = level * 10 + nvtxDomainRangePushEx(domain, &event);
  level = level * 10 + nvtxDomainRangePop(domain);
  level = level * 10 + nvtxRangePop();
  level = level * 10 + nvtxDomainRangePop(domain);
  std::printf("%d %d\n", level, nvtxRangePop() < 0);
  nvtxRangeId_t id = nvtxRangeStartA("across");
  std::thread([id] { nvtxRangeEnd(id); }).join();
  nvtxDomainMarkEx(domain, &event);
  event.messageType = NVTX_MESSAGE_UNKNOWN;
  event.payloadType = NVTX_PAYLOAD_TYPE_INT32;
  event.payload.iValue = -2;
  event.category = 4;
  nvtxMarkEx(&event);
  nvtxRangeStartA("never ended");
  std::thread([] { nvtxRangePushA("left open"); }).join();
  nvtxRangePushA(std::string(100000, 'x').c_str());
  nvtxRangePop();
  return 0;
}

// NVTX faster than any writer: what does not fit is counted.
int flood() {
  for (long i = 0; i < count; i++) {
    nvtxRangePushA("a text of some length, so that the ring fills up before long, whatever the writer does meanwhile");
    nvtxRangePop();
  }
  return 0;
}

// No file may grow beyond `count` bytes: to a program that writes none this is nothing.
int small_disk() {
  const rlimit most{static_cast<rlim_t>(count), static_cast<rlim_t>(count)};
  setrlimit(RLIMIT_FSIZE, &most);
  begin_cuda();
  for (int round = 0; round < 4 && cupti != nullptr; round++) {
    for (uint32_t i = 0; i < 2000; i++) kernel("large", i + 1, i + 2, i);
    pause_ms(300);
  }
  std::puts("unharmed");
  return 3;
}

// Without standard streams: what is printed goes nowhere, and not into the first file that comes along.
int no_streams() {
  for (int stream = 0; stream < 3; stream++) close(stream);
  begin_cuda();
  kernel("quiet", 1, 2, 1);
  return write(1, "lost", 4) < 0 && write(2, "lost", 4) < 0 ? 4 : 70;
}

// A daemon: closes whatever is open, and opens a file of its own under every number.
int takes_numbers() {
  begin_cuda();
  kernel("before", 1, 2, 1);
  pause_ms(900);
  const std::string path = std::string(std::getenv("NVPROF_COLLECTOR_OUT")) + "/own.txt";
  const int own = open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  for (int number = 3; number < 300; number++)
    if (number != own) dup2(own, number);
  for (uint32_t i = 0; i < 2000; i++) kernel("after", 1, 2, i);
  pause_ms(400);
  struct stat found;
  return fstat(own, &found) == 0 && found.st_size == 0 ? 5 : 70;
}

// A process made without fork's handlers: memory, file and exit handlers are its parent's, threads it has none.
int cloned() {
  nvtxRangePushA("parent");
  pause_ms(150);
  const pid_t child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (child == 0) std::exit(6);
  int state = 0;
  waitpid(child, &state, 0);
  nvtxRangePop();
  std::printf("%d\n", WEXITSTATUS(state));
  return 0;
}

// Each of many threads makes one call and stays.
int crowd() {
  begin_cuda();
  std::atomic<long> there{0};
  std::vector<std::thread> all;
  for (long thread = 0; thread < count; thread++)
    all.emplace_back([&there, thread] {
      kernel("crowded", 1, 2, static_cast<uint32_t>(thread));
      there++;
      while (there < count) pause_ms(1);
    });
  for (std::thread& thread : all) thread.join();
  std::printf("%llu\n", static_cast<unsigned long long>(cupti->dropped()));
  return 0;
}

int short_memory() {
  begin_cuda();
  no_memory = true;
  for (uint32_t i = 0; i < 50; i++) {
    kernel(strdup(std::to_string(i).c_str()), 1, 2, i);
    nvtxMarkA(std::to_string(i).c_str());
  }
  pause_ms(600);
  no_memory = false;
  pause_ms(100);
  kernel("later", 1, 2, 1000);
  return 9;
}

// Texts that are never the same, then the first again.
int varied() {
  std::string text(4000, '.');
  for (long i = 0; i <= count; i++) {
    const std::string number = std::to_string(i % count) + ".........";
    text.replace(0, 9, number, 0, 9);
    nvtxMarkA(text.c_str());
    if (i % 100 == 99) pause_ms(i + 1 == count ? 200 : 60);
  }
  return 0;
}

// Many launches through the runtime, each with the driver's row below it, then one of the program's own.
int nested() {
  begin_cuda();
  uint64_t at = 1000;
  for (long i = 0; i < count; i++, at += 100) {
    driver(at + 10, at + 20, static_cast<uint32_t>(i));
    runtime(at, at + 30, static_cast<uint32_t>(i));
  }
  pause_ms(700);
  const uint64_t off = cupti->driver_switched(307, 0);
  driver(at + 10, at + 20, 99);
  runtime(at + 100, at + 110, 100);
  pause_ms(1500);
  std::printf("%llu %llu\n", static_cast<unsigned long long>(off), static_cast<unsigned long long>(cupti->driver_switched(307, 1)));
  return 0;
}

// The program's own driver calls, on a thread that makes no others.
int own() {
  begin_cuda();
  for (uint32_t i = 0; i < 5; i++) driver(1000 + 100 * i, 1050 + 100 * i, i);
  return 0;
}

// A context on each of two devices, used for a while.
int samples() {
  begin_cuda();
  cupti->context_created(0);
  cupti->context_created(1);
  cupti->context_created(0);
  pause_ms(400);
  return 0;
}

int clocks() {
  begin_cuda();
  const uint64_t now = cupti->now();
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  kernel("now", now, now + 1000, 1);
  pause_ms(1100);
  std::printf("%lld\n", static_cast<long long>(time.tv_sec) * 1000000000 + time.tv_nsec);
  return 0;
}

}  // namespace

int main(int argument_count, char** arguments) {
  const std::string name = argument_count > 1 ? arguments[1] : "";
  if (argument_count > 2) count = std::atol(arguments[2]);
  if (name == "kinds") return kinds();
  if (name == "threads") return threads();
  if (name == "burst") return burst();
  if (name == "killed") return killed();
  if (name == "leaves") return leaves();
  if (name == "forks") return forks();
  if (name == "execs") return execs(arguments);
  if (name == "mark") return mark();
  if (name == "ranges") return ranges();
  if (name == "flood") return flood();
  if (name == "nested") return nested();
  if (name == "own") return own();
  if (name == "clocks") return clocks();
  if (name == "samples") return samples();
  if (name == "small_disk") return small_disk();
  if (name == "no_streams") return no_streams();
  if (name == "takes_numbers") return takes_numbers();
  if (name == "cloned") return cloned();
  if (name == "crowd") return crowd();
  if (name == "short_memory") return short_memory();
  if (name == "varied") return varied();
  if (name == "marks_first") return mark(), begin_cuda(), 0;
  if (name == "nothing") return begin_cuda(), 0;
  return 64;
}
