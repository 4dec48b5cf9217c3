#include "covering.h"

#include <algorithm>
#include <new>
#include <queue>
#include <stack>
#include <utility>
#include <vector>

namespace {

// Intervals that have begun, those that began last on top. Instants only rise, so what has ended on top never counts
// again, and what has ended below is found out when it comes to the top: each interval goes up and comes off once.
class Open {
 public:
  Open(const int64_t* begin, const int64_t* end, uint64_t count) : begin_(begin), end_(end), count_(count) {}

  int64_t at(int64_t instant) {
    for (; next_ < count_ && begin_[next_] <= instant; ++next_) {
      if (end_[next_] > instant) stack_.push_back(static_cast<int64_t>(next_));
    }
    while (!stack_.empty() && end_[stack_.back()] <= instant) stack_.pop_back();
    return stack_.empty() ? -1 : stack_.back();
  }

 private:
  const int64_t* begin_;
  const int64_t* end_;
  uint64_t count_;
  uint64_t next_ = 0;
  std::vector<int64_t> stack_;
};

}  // namespace

extern "C" int nvp_covering(const int64_t* begin, const int64_t* end, uint64_t intervals, const int64_t* at,
                            uint64_t instants, int64_t* found) {
  try {
    Open open(begin, end, intervals);
    if (std::is_sorted(at, at + instants)) {
      for (uint64_t k = 0; k < instants; ++k) found[k] = open.at(at[k]);
      return 0;
    }
    std::vector<std::pair<int64_t, uint64_t>> order(instants);  // not numbers alone: sorting would look far for each
    for (uint64_t k = 0; k < instants; ++k) order[k] = {at[k], k};
    std::sort(order.begin(), order.end());
    for (const auto& [instant, k] : order) found[k] = open.at(instant);
    return 0;
  } catch (const std::bad_alloc&) {
    return 1;
  }
}

namespace {

// Pieces as they are made; one that goes on with the same label is the same piece.
class Pieces {
 public:
  Pieces(int64_t* begin, int64_t* end, int64_t* label) : begin_(begin), end_(end), label_(label) {}

  void add(int64_t begin, int64_t end, int64_t label) {
    if (begin >= end) return;
    if (count_ > 0 && label_[count_ - 1] == label && end_[count_ - 1] == begin) {
      end_[count_ - 1] = end;
      return;
    }
    begin_[count_] = begin;
    end_[count_] = end;
    label_[count_++] = label;
  }
  uint64_t count() const { return count_; }

 private:
  int64_t* begin_;
  int64_t* end_;
  int64_t* label_;
  uint64_t count_ = 0;
};

// At each instant the number of the interval that is on top of `open` of those that cover it; `open` is a stack or a queue
// by age. 0, or 1 when there is no memory.
template <class Open>
int flattened(Open open, const int64_t* begin, const int64_t* end, const int64_t* number, uint64_t intervals,
              Pieces made, uint64_t* pieces) {
  try {
    int64_t at = 0;  // all time before is given
    const auto until = [&](int64_t instant) {
      while (!open.empty() && at < instant) {
        const uint64_t top = open.top();
        const int64_t stop = std::min(end[top], instant);
        if (stop > at) {
          made.add(at, stop, number[top]);
          at = stop;
        }
        if (end[top] <= instant) open.pop();
      }
    };
    for (uint64_t k = 0; k < intervals; ++k) {
      if (end[k] <= begin[k]) continue;
      until(begin[k]);
      at = begin[k];
      open.push(k);
    }
    until(INT64_MAX);
    *pieces = made.count();
    return 0;
  } catch (const std::bad_alloc&) {
    return 1;
  }
}

}  // namespace

extern "C" int nvp_innermost(const int64_t* begin, const int64_t* end, const int64_t* label, uint64_t intervals,
                             int64_t* piece_begin, int64_t* piece_end, int64_t* piece_label, uint64_t* pieces) {
  const std::stack<uint64_t, std::vector<uint64_t>> last_on_top;
  return flattened(last_on_top, begin, end, label, intervals, {piece_begin, piece_end, piece_label}, pieces);
}

extern "C" int nvp_oldest(const int64_t* begin, const int64_t* end, const int64_t* age, uint64_t intervals,
                          int64_t* piece_begin, int64_t* piece_end, int64_t* piece_age, uint64_t* pieces) {
  const auto younger = [age](uint64_t a, uint64_t b) { return age[a] > age[b]; };
  const std::priority_queue<uint64_t, std::vector<uint64_t>, decltype(younger)> oldest_on_top(younger);
  return flattened(oldest_on_top, begin, end, age, intervals, {piece_begin, piece_end, piece_age}, pieces);
}
