#include "nvtx_registry.h"

#include <atomic>
#include <map>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

namespace nvcap::nvtx {
namespace {

constexpr size_t kLongest = 4096;

struct Registry {
  std::mutex lock;
  std::unordered_map<std::string, Domain*> domains;
  std::unordered_set<const void*> handles;
  std::unordered_map<std::string, Registered*> strings;
  std::map<std::pair<uint32_t, uint32_t>, std::string> categories;
  std::atomic<uint64_t> age{0};
};

// Never destroyed: calls come in until the very end of the process.
Registry& registry() {
  static Registry* const one = new Registry;
  return *one;
}

}  // namespace

Domain* make_domain(std::string_view name) {
  Registry& all = registry();
  std::lock_guard<std::mutex> guard(all.lock);
  Domain*& domain = all.domains[std::string(name.substr(0, kLongest))];
  if (domain == nullptr) {
    domain = new Domain{static_cast<uint32_t>(all.domains.size()), std::string(name.substr(0, kLongest))};
    all.handles.insert(domain);
    all.age++;
  }
  return domain;
}

Registered* make_string(std::string_view text) {
  Registry& all = registry();
  std::lock_guard<std::mutex> guard(all.lock);
  Registered*& made = all.strings[std::string(text.substr(0, kLongest))];
  if (made == nullptr) {
    made = new Registered{std::string(text.substr(0, kLongest))};
    all.handles.insert(made);
    all.age++;
  }
  return made;
}

void name_category(const Domain* domain, uint32_t category, std::string_view name) {
  Registry& all = registry();
  std::lock_guard<std::mutex> guard(all.lock);
  const uint32_t index = domain != nullptr && all.handles.count(domain) != 0 ? domain->index : 0;
  all.categories[{index, category}] = std::string(name.substr(0, kLongest));
  all.age++;
}

bool is_ours(const Domain* domain) {
  Registry& all = registry();
  std::lock_guard<std::mutex> guard(all.lock);
  return all.handles.count(domain) != 0;
}

bool is_ours(const Registered* text) {
  Registry& all = registry();
  std::lock_guard<std::mutex> guard(all.lock);
  return all.handles.count(text) != 0;
}

std::string category_name(uint32_t domain_index, uint32_t category) {
  Registry& all = registry();
  std::lock_guard<std::mutex> guard(all.lock);
  const auto found = all.categories.find({domain_index, category});
  return found == all.categories.end() ? "" : found->second;
}

uint64_t registry_age() { return registry().age.load(std::memory_order_acquire); }

void lock_registry() { registry().lock.lock(); }
void unlock_registry() { registry().lock.unlock(); }

std::string narrow(const wchar_t* text) {
  std::string out;
  for (; *text != 0 && out.size() < kLongest; text++) {
    const uint32_t c = static_cast<uint32_t>(*text);
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else if (c < 0x800) {
      out += static_cast<char>(0xC0 | c >> 6);
      out += static_cast<char>(0x80 | (c & 63));
    } else if (c < 0x10000) {
      out += static_cast<char>(0xE0 | c >> 12);
      out += static_cast<char>(0x80 | (c >> 6 & 63));
      out += static_cast<char>(0x80 | (c & 63));
    } else {
      out += static_cast<char>(0xF0 | (c >> 18 & 7));
      out += static_cast<char>(0x80 | (c >> 12 & 63));
      out += static_cast<char>(0x80 | (c >> 6 & 63));
      out += static_cast<char>(0x80 | (c & 63));
    }
  }
  return out;
}

}  // namespace nvcap::nvtx
