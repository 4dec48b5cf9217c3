#include "thread_names.h"

#include <fcntl.h>
#include <unistd.h>

#include <vector>

namespace nvcap {
namespace {

constexpr size_t kMost = 1024;  // looked at again; more threads than that keep their first name

std::string read_name(uint32_t tid) {
  const std::string path = "/proc/self/task/" + std::to_string(tid) + "/comm";
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return "";
  char text[64];
  const ssize_t bytes = ::read(file, text, sizeof text);
  ::close(file);
  std::string name(text, bytes > 0 ? static_cast<size_t>(bytes) : 0);
  while (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

}  // namespace

void ThreadNames::look(Sink& sink, uint32_t tid) {
  std::string name = read_name(tid);
  std::string& known = names_[tid];
  if (name.empty() || name == known) return;
  known = std::move(name);
  given(sink, tid, known, 0);
}

void ThreadNames::look_again(Sink& sink) {
  size_t looked = 0;
  std::vector<uint32_t> tids;
  for (const auto& entry : names_)
    if (looked++ < kMost) tids.push_back(entry.first);
  for (const uint32_t tid : tids) look(sink, tid);
}

}  // namespace nvcap
