// Reads mutants of one database with the decoder, in a build that checks every access.
//
//     sanitized FILE ROOT THREADS MUTANTS SEED WANT...
//
// WANT is a want number per column, every storage class allowed that goes with it. Prints how often each reason came.
// Each mutant lives in memory behind a descriptor; everything handed out is read once and given back.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <vector>

#include "pages.h"

namespace {

using Bytes = std::vector<uint8_t>;

Bytes damaged(const Bytes& data, uint32_t page_size, std::mt19937& random) {
  Bytes content = data;
  const auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  const size_t pages = data.size() / page_size, page = (pages > 1 ? 1 + below(pages - 1) : 0) * page_size;
  const size_t cells = static_cast<size_t>(content[page + 3]) << 8 | content[page + 4];
  const uint8_t odd[] = {0, 1, 2, 5, 9, 10, 12, 13, 127, 128, 129, 254, 255};
  const auto byte = [&] { return below(3) ? odd[below(sizeof odd)] : static_cast<uint8_t>(below(256)); };
  const auto put = [&](size_t at) {
    if (at < content.size()) content[at] = byte();
  };
  const size_t times = 1 + below(4);
  for (size_t i = 0; i < times; ++i) {
    switch (below(5)) {
      case 0:
        put(100 + below(content.size() - 100));
        break;
      case 1:
        put(page + below(12));
        break;
      case 2:
        put(page + 8 + below(2 * cells + 4));
        break;
      case 3:
        put(page + (static_cast<size_t>(content[page + 8]) << 8 | content[page + 9]) + below(24));
        break;
      default: {
        const size_t from = below(content.size());
        for (size_t k = from; k < from + 40; ++k) put(k);
      }
    }
  }
  if (below(20) == 0) content.resize(content.size() - below(content.size()));  // shorter than its pages
  return content;
}

uint64_t touched(const nvp_block& block) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < block.bytes; ++i) sum += static_cast<const uint8_t*>(block.data)[i];
  nvp_pages_free(block.data, block.bytes);
  return sum;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 7) return 2;
  std::ifstream file(arguments[1], std::ios::binary);
  const Bytes data((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<nvp_column> columns;
  size_t wanted = 0;
  for (int i = 6; i < count; ++i) {
    const auto want = static_cast<uint8_t>(std::atoi(arguments[i]));
    const int classes = want == NVP_SKIP ? 31 : want == NVP_INT64 ? NVP_NULL | NVP_INTEGER : NVP_NULL | NVP_TEXT;
    columns.push_back({static_cast<uint8_t>(classes), want, 1, 0});
    wanted += want != NVP_SKIP;
  }
  nvp_request request{};
  request.page_size = static_cast<uint32_t>(data[16]) << 8 | data[17];
  if (request.page_size == 1) request.page_size = 65536;
  request.reserved = data[20];
  request.pages = static_cast<uint32_t>(data.size() / request.page_size);
  request.root = static_cast<uint32_t>(std::atoi(arguments[2]));
  request.threads = static_cast<uint32_t>(std::atoi(arguments[3]));
  request.columns = static_cast<uint32_t>(columns.size());
  request.column = columns.data();
  request.max_distinct = 1u << 20;
  request.max_rows = request.max_bytes = 1u << 26;
  request.max_record = 1u << 24;
  std::mt19937 random(static_cast<uint32_t>(std::atoi(arguments[5])));
  std::map<int, int> reasons;
  uint64_t sum = 0;
  const int mutants = std::atoi(arguments[4]);
  for (int i = 0; i <= mutants; ++i) {
    const Bytes content = i == 0 ? data : damaged(data, request.page_size, random);
    request.file = memfd_create("mutant", 0);
    if (write(request.file, content.data(), content.size()) != static_cast<ssize_t>(content.size())) return 3;
    std::vector<nvp_vector> out(wanted);
    uint64_t rows = 0;
    const int reason = nvp_pages_read(&request, out.data(), &rows);
    close(request.file);
    if (i == 0 && reason != NVP_OK) return 4;
    ++reasons[reason];
    if (reason != NVP_OK) continue;
    for (nvp_vector& vector : out) {
      sum += touched(vector.validity) + touched(vector.values) + touched(vector.offsets) + touched(vector.words);
    }
  }
  for (const auto& [reason, times] : reasons) std::printf("%d %d\n", reason, times);
  std::printf("sum %llu\n", static_cast<unsigned long long>(sum));
  return 0;
}
