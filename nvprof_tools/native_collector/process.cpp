#include "process.h"

#include <limits.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <mutex>

#include "nvtx_registry.h"
#include "session.h"

namespace nvcap {
namespace {

std::atomic<Session*> running{nullptr};   // for the program's calls
std::atomic<Session*> buffers{nullptr};   // for CUPTI's buffers: to the very end, the last flush comes then
bool ended = false;                       // under start_lock: nothing starts any more
std::mutex& start_lock() {
  static std::mutex* const lock = new std::mutex;
  return *lock;
}

void CUPTIAPI requested(uint8_t** buffer, size_t* size, size_t* most_records) {
  Session* session = buffers.load(std::memory_order_acquire);
  const EmptyBuffer empty = session != nullptr ? session->pool.take() : EmptyBuffer{};
  *buffer = empty.data;
  *size = empty.size;
  *most_records = 0;
}

void CUPTIAPI completed(CUcontext, uint32_t, uint8_t* buffer, size_t size, size_t valid_bytes) {
  Session* session = buffers.load(std::memory_order_acquire);
  if (session != nullptr && buffer != nullptr) session->pool.complete(buffer, size, valid_bytes);
}

void CUPTIAPI on_resource(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
  Session* session = buffers.load(std::memory_order_acquire);
  if (session == nullptr || data == nullptr || domain != CUPTI_CB_DOMAIN_RESOURCE) return;
  if (id == CUPTI_CBID_RESOURCE_CONTEXT_CREATED)
    session->context_created(static_cast<const CUpti_ResourceData*>(data)->context);
}

void at_exit() {
  Session* session;
  {
    std::lock_guard<std::mutex> guard(start_lock());
    session = running.exchange(nullptr);
    ended = true;
  }
  // A process that was cloned without fork's handlers has our memory and file but none of our threads.
  if (session == nullptr || !session->is_of_this_process()) return;
  try {
    session->finish();
  } catch (const std::exception& error) {
    debug("the capture could not be ended: %s", error.what());
  }
}

void before_fork() {
  start_lock().lock();
  nvtx::lock_registry();
}

void in_parent() {
  nvtx::unlock_registry();
  if (Session* session = running.load()) session->forks++;
  start_lock().unlock();
}

// The child has none of our threads and half of our locks: it leaves the session alone, and the file with it. If it starts
// CUDA itself, it gets one of its own.
void in_child() {
  nvtx::unlock_registry();
  running.store(nullptr);
  buffers.store(nullptr);
  ended = false;
  start_lock().unlock();
}

// Under start_lock.
Session* make_session() {
  static bool prepared = false;
  if (ended) return nullptr;
  if (Session* session = running.load()) return session;
  const Options options = read_options();
  if (options.folder.empty()) return nullptr;
  Session* session = new Session(options);
  if (!session->open()) return nullptr;  // and is left: what it has started may still look at it
  if (!prepared) pthread_atfork(before_fork, in_parent, in_child);
  prepared = true;
  std::atexit(at_exit);
  running.store(session, std::memory_order_release);
  return session;
}

}  // namespace

Session* current() { return running.load(std::memory_order_acquire); }

Session* ensure() {
  std::lock_guard<std::mutex> guard(start_lock());
  return make_session();
}

void ensure_cuda() {
  std::lock_guard<std::mutex> guard(start_lock());
  Session* session = make_session();
  if (session == nullptr || buffers.load() != nullptr) return;
  buffers.store(session, std::memory_order_release);
  session->start_cuda();
  end_first();  // what CUPTI has registered meanwhile would else run, and tear it down, before our end
}

void end_first() { std::atexit(at_exit); }

ActivityCallbacks activity_callbacks() { return {requested, completed, on_resource}; }

std::string program_name() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  const std::string whole(path, length > 0 ? static_cast<size_t>(length) : 0);
  const size_t slash = whole.rfind('/');
  return whole.empty() ? "process" : whole.substr(slash == std::string::npos ? 0 : slash + 1);
}

}  // namespace nvcap

// Also where the library is unloaded, or where exit handlers were lost.
__attribute__((destructor)) static void unloaded() { nvcap::at_exit(); }
