// Whether another profiler has this process already.
#pragma once

#include <string>

namespace nvcap {

// Its name as far as its environment shows it; empty: none is seen.
std::string other_tool();

}  // namespace nvcap
