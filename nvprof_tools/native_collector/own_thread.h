// Threads of the collector: no signals of the program, no markers of their own, a name that tells.
#pragma once

#include <cstdint>
#include <functional>

namespace nvcap {

// Starts a detached thread; the body is given its thread id. False: it could not be started.
bool start_own_thread(std::function<void(uint32_t tid)> body);

}  // namespace nvcap
