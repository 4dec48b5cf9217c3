#include "capture_file.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "crc32.h"
#include "options.h"

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

}  // namespace

CaptureFile::~CaptureFile() { close(); }

bool CaptureFile::open(const std::string& folder, const std::string& program, int pid) {
  const std::string stem = folder + "/" + safe_name(program) + "-" + std::to_string(pid);
  for (int again = 0; again < 1000 && file_ < 0; again++) {
    const std::string path = stem + (again == 0 ? "" : "-" + std::to_string(again)) + ".nvcap";
    file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (file_ < 0 && errno != EEXIST) break;
  }
  if (file_ < 0) {
    debug("no file in %s: %s", folder.c_str(), std::strerror(errno));
    return false;
  }
  uint8_t header[64] = {'N', 'V', 'P', 'C', 'A', 'P', '\r', '\n', 1, 0, 0, 0, 64, 0, 0, 0};
  return write_all(header, sizeof header);
}

bool CaptureFile::block(uint16_t kind, uint32_t rows, const void* payload, size_t bytes) {
  if (file_ < 0) {
    failed_++;
    return false;
  }
  BlockHeader header;
  header.kind = kind;
  header.rows = rows;
  header.bytes = static_cast<uint32_t>(bytes);
  header.payload_sum = crc32(payload, bytes);
  header.sequence = sequence_;
  const uint8_t* raw = reinterpret_cast<const uint8_t*>(&header);
  header.header_sum = crc32(raw + 24, 8, crc32(raw, 20));
  static const uint8_t zeros[8] = {};
  iovec parts[3] = {{&header, sizeof header},
                    {const_cast<void*>(payload), bytes},
                    {const_cast<uint8_t*>(zeros), (8 - bytes % 8) % 8}};
  const size_t total = parts[0].iov_len + parts[1].iov_len + parts[2].iov_len;
  const uint64_t before = offset_;
  const ssize_t wrote = ::writev(file_, parts, 3);
  bool whole = wrote == static_cast<ssize_t>(total);
  if (!whole && (wrote >= 0 || errno == EINTR)) {  // the rest, part by part
    size_t done = wrote < 0 ? 0 : static_cast<size_t>(wrote);
    whole = true;
    for (const iovec& part : parts) {
      const size_t skip = done < part.iov_len ? done : part.iov_len;
      done -= skip;
      whole = whole && write_all(static_cast<const uint8_t*>(part.iov_base) + skip, part.iov_len - skip);
    }
  }
  if (!whole) {
    // What is there of the block goes, so that the file still ends with a whole one; the disk may be full for good.
    debug("a block could not be written: %s", std::strerror(errno));
    (void)!::ftruncate(file_, static_cast<off_t>(before));
    close();
    failed_++;
    return false;
  }
  offset_ = before + total;
  sequence_++;
  return true;
}

bool CaptureFile::write_all(const void* data, size_t bytes) {
  const uint8_t* at = static_cast<const uint8_t*>(data);
  while (bytes > 0) {
    const ssize_t wrote = ::write(file_, at, bytes);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    at += wrote;
    bytes -= static_cast<size_t>(wrote);
    offset_ += static_cast<uint64_t>(wrote);
  }
  return true;
}

void CaptureFile::close() {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

}  // namespace nvcap
