#include "own_thread.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <exception>
#include <memory>

#include "nvtx_calls.h"
#include "options.h"

namespace nvcap {
namespace {

void* begin(void* given) {
  const std::unique_ptr<std::function<void(uint32_t)>> body(static_cast<std::function<void(uint32_t)>*>(given));
  nvtx::this_thread_is_ours();
  pthread_setname_np(pthread_self(), "nvcap");
  try {
    (*body)(static_cast<uint32_t>(syscall(SYS_gettid)));
  } catch (const std::exception& error) {  // no memory, most likely: the program may live with that, so we do
    debug("a thread of the collector ended: %s", error.what());
  }
  return nullptr;
}

}  // namespace

bool start_own_thread(std::function<void(uint32_t tid)> body) {
  // Signals are the program's business: its handlers shall not run here.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  auto* given = new std::function<void(uint32_t)>(std::move(body));
  pthread_t thread;
  const bool made = pthread_create(&thread, nullptr, begin, given) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (made) pthread_detach(thread);
  else delete given;
  return made;
}

}  // namespace nvcap
