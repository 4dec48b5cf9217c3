// This process: its name, its one session, its forks and its end.
#pragma once

#include <string>

#include "activity.h"

namespace nvcap {

#ifndef NVCAP_VERSION
#define NVCAP_VERSION "1"
#endif

// Base name of the executable.
std::string program_name();

// Our end comes before that of whatever has registered exit handlers until now. May be called again.
void end_first();

// What CUPTI is given: they find the session by themselves.
ActivityCallbacks activity_callbacks();

}  // namespace nvcap
