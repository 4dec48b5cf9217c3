/* The header in C, in another file of the same program: one state, one domain for both. */
#include "nvtx_markers.h"

int in_c(void) {
    const uint64_t section = nvtx_markers_section_start("from c", 1, -1);
    const uint64_t held = nvtx_markers_held_start(&section);
    const int due = nvtx_markers_range_push(NVTX_MARKERS_BARRIER_WAIT, NULL);
    if (due) nvtx_markers_range_pop();
    nvtx_markers_range_end(held);
    nvtx_markers_range_end(section);
    nvtx_markers_timeline_event("GPU_END", "from c", NULL);
    return 3;
}
