#include "capture_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "crc32.h"
#include "json.h"
#include "options.h"
#include "rows.h"

namespace nvcap {
namespace {

struct BlockHeader {
  uint32_t magic = 0x4B4C4256;
  uint16_t kind = 0;
  uint16_t flags = 0;
  uint32_t rows = 0;
  uint32_t bytes = 0;
  uint32_t payload_sum = 0;
  uint32_t header_sum = 0;
  uint64_t sequence = 0;
};
static_assert(sizeof(BlockHeader) == 32, "as documented");

std::string safe_name(const std::string& program) {
  std::string name;
  for (const char c : program.substr(0, 64)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
                       c == '-';
    name += plain ? c : '_';
  }
  return name.empty() ? "process" : name;
}

// Programs without standard streams print to whatever has their numbers, and programs that open files expect low ones.
constexpr int kLowest = 200, kAboveStandard = 3;

int out_of_the_way(int file) {
  for (const int lowest : {kLowest, kAboveStandard}) {
    const int moved = ::fcntl(file, F_DUPFD_CLOEXEC, lowest);
    if (moved < 0) continue;
    ::close(file);
    return moved;
  }
  if (file >= kAboveStandard) return file;
  ::close(file);
  return -1;
}

// A file over the process's limit of size sends a signal whose default is the program's end: not for our file.
class NoSignalOfSize {
 public:
  NoSignalOfSize() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~NoSignalOfSize() {
    const int error = errno;
    const timespec at_once{};
    if (error == EFBIG && sigismember(&before_, SIGXFSZ) == 0) sigtimedwait(&signal_, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  NoSignalOfSize(const NoSignalOfSize&) = delete;
  NoSignalOfSize& operator=(const NoSignalOfSize&) = delete;

 private:
  sigset_t signal_, before_;
};

// All of it at that place, or false.
bool write_at(int file, const void* data, size_t bytes, uint64_t place) {
  const uint8_t* at = static_cast<const uint8_t*>(data);
  while (bytes > 0) {
    const ssize_t wrote = ::pwrite(file, at, bytes, static_cast<off_t>(place));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    at += wrote;
    bytes -= static_cast<size_t>(wrote);
    place += static_cast<uint64_t>(wrote);
  }
  return true;
}

}  // namespace

CaptureFile::~CaptureFile() { close(); }

bool CaptureFile::open(const std::string& folder, const std::string& program, int pid) {
  const std::string stem = folder + "/" + safe_name(program) + "-" + std::to_string(pid);
  for (int again = 0; again < 1000 && file_ < 0; again++) {
    path_ = stem + (again == 0 ? "" : "-" + std::to_string(again)) + ".nvcap";
    file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (file_ < 0 && errno != EEXIST) break;
  }
  struct stat found {};
  if (file_ >= 0) file_ = out_of_the_way(file_);
  if (file_ < 0 || ::fstat(file_, &found) != 0) {
    debug("no file in %s: %s", folder.c_str(), std::strerror(errno));
    return false;
  }
  device_ = found.st_dev;
  inode_ = found.st_ino;
  const uint8_t header[64] = {'N', 'V', 'P', 'C', 'A', 'P', '\r', '\n', 1, 0, 0, 0, 64, 0, 0, 0};
  offset_ = last_ = sizeof header;
  const NoSignalOfSize quiet;
  if (write_at(file_, header, sizeof header, 0)) return true;
  remove();
  return false;
}

// Programs that close every descriptor may have given our number to a file of theirs.
bool CaptureFile::is_ours() const {
  struct stat found {};
  return file_ >= 0 && ::fstat(file_, &found) == 0 && found.st_dev == device_ && found.st_ino == inode_;
}

bool CaptureFile::block(uint16_t kind, uint32_t rows, const void* payload, size_t bytes) {
  if (!is_ours()) file_ = -1;
  if (file_ >= 0 && put(kind, rows, payload, bytes)) return true;
  failed_++;
  if (file_ >= 0 && sequence_ > 0) give_up(std::strerror(errno));
  return false;
}

bool CaptureFile::put(uint16_t kind, uint32_t rows, const void* payload, size_t bytes) {
  BlockHeader header;
  header.kind = kind;
  header.rows = rows;
  header.bytes = static_cast<uint32_t>(bytes);
  header.payload_sum = crc32(payload, bytes);
  header.sequence = sequence_;
  const uint8_t* raw = reinterpret_cast<const uint8_t*>(&header);
  header.header_sum = crc32(raw + 24, 8, crc32(raw, 20));
  static const uint8_t zeros[8] = {};
  const size_t padding = (8 - bytes % 8) % 8;
  const uint64_t begin = offset_ + sizeof header;
  const NoSignalOfSize quiet;
  if (!write_at(file_, &header, sizeof header, offset_) || !write_at(file_, payload, bytes, begin) ||
      !write_at(file_, zeros, padding, begin + bytes)) {
    const int why = errno;
    debug("a block could not be written: %s", std::strerror(why));
    (void)!::ftruncate(file_, static_cast<off_t>(offset_));
    errno = why;
    return false;
  }
  last_ = offset_;
  offset_ = begin + bytes + padding;
  sequence_++;
  return true;
}

void CaptureFile::give_up(const char* why) {
  const std::string text = JsonObject().text("slug", "write-failed").number("count", 1).text("message", why).str();
  if (!put(kNotice, 1, text.data(), text.size()) && sequence_ > 1) {
    failed_++;
    sequence_--;
    offset_ = last_;
    (void)!::ftruncate(file_, static_cast<off_t>(offset_));
    put(kNotice, 1, text.data(), text.size());
  }
  close();
}

void CaptureFile::remove() {
  ::unlink(path_.c_str());
  close();
}

void CaptureFile::close() {
  if (is_ours()) ::close(file_);
  file_ = -1;
}

}  // namespace nvcap
