// What programs register with NVTX for good: domains, strings, names of categories. Never freed: their addresses are the
// handles, and a forked child goes on using them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace nvcap::nvtx {

struct Domain {
  uint32_t index;  // 1, 2, ...; the default domain is 0
  std::string name;
};

struct Registered {
  std::string text;
};

Domain* make_domain(std::string_view name);
Registered* make_string(std::string_view text);
void name_category(const Domain* domain, uint32_t category, std::string_view name);

// Whether a handle that came in with a call is one of ours; only then may it be looked into.
bool is_ours(const Domain* domain);
bool is_ours(const Registered* text);
// Empty: it has no name.
std::string category_name(uint32_t domain_index, uint32_t category);
// Grows whenever something is registered.
uint64_t registry_age();

// Around fork.
void lock_registry();
void unlock_registry();

// UTF-8 of wide text, cut to a bound.
std::string narrow(const wchar_t* text);

}  // namespace nvcap::nvtx
