// Attaching to a program's NVTX.
#pragma once

#include <nvtx3/nvToolsExt.h>

namespace nvcap::nvtx {

// Puts our functions into the tables of one module of the program (each shared object has its own). False: it would not.
bool attach(NvtxGetExportTableFunc_t get_table);

// Calls from this thread (through a library that the program preloads, say) are not recorded.
void this_thread_is_ours();

}  // namespace nvcap::nvtx
