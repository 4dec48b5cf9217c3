#include "page_file.h"

#include <unistd.h>

#include <cerrno>

#include "bytes.h"

namespace nvp {
namespace {

// SQLite keeps the page that holds this byte for locks.
constexpr uint32_t kLockByte = 0x40000000;

}  // namespace

PageFile::PageFile(const nvp_request& request)
    : file_(request.file),
      page_size_(request.page_size),
      usable_(request.page_size - request.reserved),
      pages_(request.pages),
      claimed_(request.pages / 64 + 1) {
  claim(1, NVP_REQUEST);  // the schema's
  const uint32_t lock_page = kLockByte / page_size_ + 1;
  if (lock_page <= pages_) claim(lock_page, NVP_REQUEST);
}

void PageFile::read_at(uint64_t at, uint64_t bytes, uint8_t* into) const {
  while (bytes > 0) {
    const ssize_t got = pread(file_, into, bytes, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    demand(got > 0, NVP_READ);
    at += static_cast<uint64_t>(got);
    into += got;
    bytes -= static_cast<uint64_t>(got);
  }
}

void PageFile::read(uint32_t page, uint32_t from, uint32_t bytes, uint8_t* into) const {
  read_at(static_cast<uint64_t>(page - 1) * page_size_ + from, bytes, into);
}

void PageFile::read_pages(uint32_t first, uint32_t count, uint8_t* into) const {
  read_at(static_cast<uint64_t>(first - 1) * page_size_, static_cast<uint64_t>(count) * page_size_, into);
}

void PageFile::claim(uint32_t page, int reason) {
  demand(page >= 1 && page <= pages_, reason);
  const uint64_t bit = uint64_t{1} << (page % 64);
  demand((claimed_[page / 64].fetch_or(bit, std::memory_order_relaxed) & bit) == 0, reason);
}

}  // namespace nvp
