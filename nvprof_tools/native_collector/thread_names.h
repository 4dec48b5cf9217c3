// Which name the system knows each thread by, noted when it is first seen and looked at again now and then.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "sink.h"

namespace nvcap {

class ThreadNames {
 public:
  void seen(Sink& sink, uint32_t tid) {
    if (tid == last_) return;
    last_ = tid;
    if (names_.count(tid) == 0) look(sink, tid);
  }
  // A name that somebody gave: NVTX, or us.
  static void given(Sink& sink, uint32_t tid, std::string_view name, uint32_t source) {
    sink.thread_name.rows.push_back({tid, sink.strings.id(name), source});
  }
  // Programs name threads after they have started.
  void look_again(Sink& sink);

 private:
  void look(Sink& sink, uint32_t tid);

  std::unordered_map<uint32_t, std::string> names_;
  uint32_t last_ = 0;
};

}  // namespace nvcap
