#include "cupti_api.h"

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

#include "options.h"

namespace nvcap {
namespace {

std::vector<std::string> places() {
  // A library newer than the driver does not work: the driver's own generation first.
  const bool older = driver_version() != 0 && driver_version() < 13000;
  const std::vector<std::string> names = older ? std::vector<std::string>{"libcupti.so.12", "libcupti.so.13", "libcupti.so"}
                                               : std::vector<std::string>{"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
  std::vector<std::string> folders = {""};
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* home = std::getenv(variable)) folders.push_back(home);
  folders.push_back("/usr/local/cuda");
  folders.push_back("/opt/cuda");
  std::vector<std::string> all;
  for (const std::string& folder : folders)
    for (const std::string& name : names) {
      if (folder.empty()) {
        all.push_back(name);
        continue;
      }
      all.push_back(folder + "/lib64/" + name);
      all.push_back(folder + "/extras/CUPTI/lib64/" + name);
    }
  return all;
}

void* find(const std::string& named) {
  if (!named.empty()) return dlopen(named.c_str(), RTLD_NOW | RTLD_LOCAL);
  for (const char* name : {"libcupti.so.13", "libcupti.so.12", "libcupti.so"})  // a framework's own copy, if it is in already
    if (void* loaded = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return loaded;
  for (const std::string& place : places())
    if (void* opened = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      debug("opened %s", place.c_str());
      return opened;
    }
  return nullptr;
}

}  // namespace

std::string Cupti::open(const std::string& named) {
  library = find(named);
  if (library == nullptr) return named.empty() ? "no libcupti was found" : "the named libcupti could not be opened";
  std::string missing;
#define NVCAP_RESOLVE(name, arguments) \
  name = reinterpret_cast<decltype(name)>(dlsym(library, #name));
#define NVCAP_RESOLVE_NEEDED(name, arguments) \
  NVCAP_RESOLVE(name, arguments)              \
  if (name == nullptr) missing = #name;
  NVCAP_CUPTI_NEEDED(NVCAP_RESOLVE_NEEDED)
  NVCAP_CUPTI_OPTIONAL(NVCAP_RESOLVE)
#undef NVCAP_RESOLVE_NEEDED
#undef NVCAP_RESOLVE
  if (!missing.empty()) return "this libcupti has no " + missing;
  said("cuptiGetVersion", cuptiGetVersion(&version));
  debug("CUPTI %u, headers %u, driver %d", version, static_cast<unsigned>(CUPTI_API_VERSION), driver_version());
  return "";
}

std::string Cupti::words(CUptiResult result) const {
  const char* text = nullptr;
  if (cuptiGetResultString != nullptr && cuptiGetResultString(result, &text) == CUPTI_SUCCESS && text != nullptr) return text;
  return "CUPTI error " + std::to_string(static_cast<int>(result));
}

CUptiResult Cupti::said(const char* call, CUptiResult result) const {
  if (debugging()) debug("%s: %d %s", call, static_cast<int>(result), words(result).c_str());
  return result;
}

int driver_version() {
  static const int version = [] {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (driver == nullptr) return 0;
    using Ask = int (*)(int*);
    const Ask ask = reinterpret_cast<Ask>(dlsym(driver, "cuDriverGetVersion"));
    int number = 0;
    if (ask == nullptr || ask(&number) != 0) number = 0;
    dlclose(driver);
    return number;
  }();
  return version;
}

}  // namespace nvcap
