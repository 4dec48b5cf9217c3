#include "nvtx_rows.h"

#include "nvtx_registry.h"

namespace nvcap::nvtx {

void Rows::take(Rings& rings) {
  rings.each([this](Ring& ring) {
    const bool closed = ring.state.load(std::memory_order_acquire) == Ring::kClosed;
    Thread& thread = threads_[&ring];
    const uint64_t lost = ring.dropped.load(std::memory_order_relaxed);
    dropped += lost - thread.dropped;
    thread.dropped = lost;
    ring.drain([&](const Entry& entry, const char* text) { one(ring, thread, entry, text); });
    ring.prefault();
    sink_.flush_if_full();
    if (!closed) return;
    close_all(thread);
    ring.state.store(Ring::kFree, std::memory_order_release);
  });
}

void Rows::one(Ring& ring, Thread& thread, const Entry& entry, const char* text) {
  names_.seen(sink_, ring.tid);
  switch (entry.op) {
    case Op::kMark: {
      const NvtxRangeRow row = range(entry, ring.tid, text);
      sink_.nvtx_mark.rows.push_back({row.start, row.payload, row.tid, row.text, row.domain, row.category,
                                      row.categoryName, row.color, row.payloadType});
      return;
    }
    case Op::kPush: return push(thread.stacks[entry.domain], {range(entry, ring.tid, text), entry.id});
    case Op::kPop: return pop(thread.stacks[entry.domain], entry, ring.tid);
    case Op::kStart: {
      NvtxRangeRow row = range(entry, ring.tid, text);
      row.rangeId = entry.id;
      row.type = 1;
      const auto early = ended_early_.find(entry.id);
      if (early == ended_early_.end()) {
        started_[entry.id] = row;
        return;
      }
      row.end = early->second.time;
      row.endTid = early->second.tid;
      ended_early_.erase(early);
      sink_.nvtx_range.rows.push_back(row);
      return;
    }
    case Op::kEnd: {
      const auto found = started_.find(entry.id);
      if (found == started_.end()) {
        ended_early_[entry.id] = {entry.time, ring.tid};
        return;
      }
      found->second.end = entry.time;
      found->second.endTid = ring.tid;
      sink_.nvtx_range.rows.push_back(found->second);
      started_.erase(found);
      return;
    }
    case Op::kThreadName:
      return ThreadNames::given(sink_, static_cast<uint32_t>(entry.id), {text, entry.text_bytes}, 1);
    case Op::kSkip: return;
  }
}

// Levels tell what a full ring has swallowed: what lies above a level must have lost its pop.
void Rows::push(std::vector<Open>& stack, Open open) {
  while (!stack.empty() && stack.back().level >= open.level) {
    stack.pop_back();
    unmatched++;
  }
  stack.push_back(open);
}

void Rows::pop(std::vector<Open>& stack, const Entry& entry, uint32_t tid) {
  while (!stack.empty() && stack.back().level > entry.id) {
    stack.pop_back();
    unmatched++;
  }
  if (stack.empty() || stack.back().level != entry.id) {
    unmatched++;
    return;
  }
  NvtxRangeRow row = stack.back().row;
  stack.pop_back();
  row.end = entry.time;
  row.endTid = tid;
  sink_.nvtx_range.rows.push_back(row);
}

void Rows::close_all(Thread& thread) {
  for (auto& entry : thread.stacks)
    for (const Open& open : entry.second) sink_.nvtx_range.rows.push_back(open.row);
  thread.stacks.clear();
}

void Rows::finish() {
  for (auto& entry : threads_) close_all(entry.second);
  for (const auto& entry : started_) sink_.nvtx_range.rows.push_back(entry.second);
  started_.clear();
  unmatched += ended_early_.size();
}

NvtxRangeRow Rows::range(const Entry& entry, uint32_t tid, const char* text) {
  NvtxRangeRow row{};
  const auto [index, name] = domain_of(entry.domain);
  row.start = entry.time;
  row.payload = entry.payload;
  row.payloadType = entry.payload_type;
  row.tid = row.endTid = tid;
  row.text = text_id(entry, text);
  row.domain = name;
  row.category = entry.category;
  row.categoryName = entry.category == 0 ? kNone : category_id(index, entry.category);
  row.color = entry.color;
  return row;
}

uint32_t Rows::text_id(const Entry& entry, const char* text) {
  if (entry.text == Text::kInline) return sink_.strings.id({text, entry.text_bytes});
  if (entry.text != Text::kRegistered || entry.registered == nullptr) return kNone;
  const auto known = registered_.find(entry.registered);
  if (known != registered_.end()) return known->second;
  const Registered* handle = static_cast<const Registered*>(entry.registered);
  const uint32_t id = is_ours(handle) ? sink_.strings.id(handle->text) : kNone;
  if (id != kNone) registered_[entry.registered] = id;
  return id;
}

std::pair<uint32_t, uint32_t> Rows::domain_of(const void* handle) {
  if (handle == nullptr) return {0, kNone};
  const auto known = domains_.find(handle);
  if (known != domains_.end()) return known->second;
  const Domain* domain = static_cast<const Domain*>(handle);
  if (!is_ours(domain)) return {0, kNone};
  return domains_[handle] = {domain->index, sink_.strings.id(domain->name)};
}

uint32_t Rows::category_id(uint32_t domain_index, uint32_t category) {
  if (registry_age_ != registry_age()) {
    registry_age_ = registry_age();
    categories_.clear();
  }
  const uint64_t key = uint64_t{domain_index} << 32 | category;
  const auto known = categories_.find(key);
  if (known != categories_.end()) return known->second;
  const std::string name = category_name(domain_index, category);
  return categories_[key] = name.empty() ? kNone : sink_.strings.id(name);
}

}  // namespace nvcap::nvtx
