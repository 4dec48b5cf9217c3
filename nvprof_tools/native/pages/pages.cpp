#include "pages.h"

#include <algorithm>
#include <limits>
#include <new>

#include "bytes.h"
#include "columns.h"
#include "leaves.h"
#include "parallel.h"

namespace nvp {
namespace {

constexpr uint64_t kLeavesATask = 64;  // fewer are not worth a thread
constexpr uint64_t kTasksAThread = 8;  // threads are slowed unevenly by what else the machine does

void check(const nvp_request& request) {
  const uint32_t size = request.page_size;
  demand(size >= 512 && size <= 65536 && (size & (size - 1)) == 0, NVP_REQUEST);
  demand(request.reserved <= 255 && size - request.reserved >= 480, NVP_REQUEST);
  demand(request.pages >= 1 && request.threads >= 1 && request.columns >= 1, NVP_REQUEST);
  demand(request.max_record < (uint64_t{1} << 31), NVP_REQUEST);
}

// Rows of each leaf.
std::vector<uint32_t> count_rows(const PageFile& file, const std::vector<Leaf>& leaves, uint32_t threads) {
  std::vector<uint32_t> rows(leaves.size());
  constexpr uint64_t step = 4096;
  parallel(threads, (leaves.size() + step - 1) / step, [&] {
    return [&](uint64_t task) {
      uint8_t head[8];
      for (uint64_t i = task * step; i < std::min<uint64_t>((task + 1) * step, leaves.size()); ++i) {
        file.read(leaves[i].page, 0, sizeof head, head);
        rows[i] = be16(head + 3);
      }
    };
  });
  return rows;
}

std::vector<Range> split(const std::vector<uint32_t>& rows, uint64_t ranges, const Layout& layout, uint32_t max_distinct) {
  std::vector<Range> found;
  uint64_t leaf = 0, row = 0;
  for (uint64_t i = 0; i < ranges; ++i) {
    Range range;
    range.first_leaf = leaf;
    range.first_row = row;
    for (; leaf < (i + 1) * rows.size() / ranges; ++leaf) row += rows[leaf];
    range.leaves = leaf - range.first_leaf;
    range.rows = row - range.first_row;
    for (size_t slot = 0; slot < layout.kinds.size(); ++slot) range.words.emplace_back(max_distinct);
    found.push_back(std::move(range));
  }
  return found;
}

uint64_t read(const nvp_request& request, nvp_vector* out) {
  check(request);
  const Layout layout(request);
  PageFile file(request);
  const std::vector<Leaf> leaves = find_leaves(file, request.root);
  const std::vector<uint32_t> counts = count_rows(file, leaves, request.threads);
  uint64_t rows = 0;
  for (const uint32_t count : counts) rows += count;
  demand(rows <= request.max_rows, NVP_LIMIT);
  Columns columns(layout, rows, request.max_bytes);
  const uint64_t tasks = std::clamp<uint64_t>(leaves.size() / kLeavesATask, 1, request.threads * kTasksAThread);
  std::vector<Range> ranges = split(counts, tasks, layout, request.max_distinct);
  parallel(request.threads, ranges.size(), [&] {
    return [&, reader = LeafReader(file, layout, columns, leaves, counts, request.max_record)](uint64_t task) mutable {
      reader.read(ranges[task]);
    };
  });
  columns.finish(ranges, request.threads);
  columns.hand_out(out);
  return rows;
}

}  // namespace
}  // namespace nvp

extern "C" {

void nvp_pages_free(void* data, uint64_t bytes) { nvp::release(data, bytes); }

int nvp_pages_read(const nvp_request* request, nvp_vector* out, uint64_t* rows) {
  try {
    *rows = nvp::read(*request, out);
    return NVP_OK;
  } catch (const nvp::Refusal& refusal) {
    return refusal.reason;
  } catch (const std::bad_alloc&) {
    return NVP_MEMORY;
  } catch (...) {
    return NVP_REQUEST;
  }
}
}
