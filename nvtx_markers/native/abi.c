/* The C ABI, for Rust and every other language that can call a C function. Declared in include/nvtx_markers_abi.h. */
#include "internal.h"

#include <stdio.h>
#include <string.h>

#include "../include/nvtx_markers_abi.h"

NM_EXPORT uint32_t nvtx_markers_abi_version(void) { return NVTX_MARKERS_ABI_VERSION; }

NM_EXPORT int32_t nvtx_markers_abi_start(void) {
    nm_start();
    return nvtx_markers_abi_active();
}

NM_EXPORT int32_t nvtx_markers_abi_active(void) {
    return atomic_load_explicit(&nm_listening, memory_order_relaxed) != 0 ? 1 : 0;
}

NM_EXPORT void nvtx_markers_abi_push(uint32_t category, uint64_t payload) {
    if (nvtx_markers_abi_active() != 0 && category > 0 && category < NM_CATEGORY_COUNT) nm_push((enum nm_category)category, payload);
}

NM_EXPORT void nvtx_markers_abi_pop(void) {
    if (nvtx_markers_abi_active() != 0) nm_pop();
}

NM_EXPORT uint64_t nvtx_markers_abi_range_start(uint32_t category, uint64_t payload) {
    if (nvtx_markers_abi_active() == 0 || category == 0 || category >= NM_CATEGORY_COUNT) return 0;
    return nm_range_start((enum nm_category)category, payload);
}

NM_EXPORT void nvtx_markers_abi_range_end(uint64_t range) {
    if (nvtx_markers_abi_active() != 0) nm_range_end(range);
}

static void number_text(char *text, size_t size, int64_t number) {
    if (number < 0)
        snprintf(text, size, "-");
    else
        snprintf(text, size, "%lld", (long long)number);
}

NM_EXPORT uint64_t nvtx_markers_abi_section_start(const char *job, size_t job_length, int64_t partition, int64_t worker) {
    char text[512], partition_text[24], worker_text[24];
    if (nvtx_markers_abi_active() == 0) return 0;
    if (job == NULL) job_length = 0;
    if (job_length > 400) job_length = 400;
    number_text(partition_text, sizeof partition_text, partition);
    number_text(worker_text, sizeof worker_text, worker);
    snprintf(text, sizeof text, "section job=%.*s partition=%s worker=%s", (int)job_length, job == NULL ? "" : job,
             partition_text, worker_text);
    return nm_section_start(text);
}

NM_EXPORT void nvtx_markers_abi_mark(const char *text, size_t length) {
    char copy[1024];
    if (nvtx_markers_abi_active() == 0 || text == NULL) return;
    if (length > sizeof copy - 1) length = sizeof copy - 1;
    memcpy(copy, text, length);
    copy[length] = '\0';
    nm_mark(NM_SHIM, copy);
}

NM_EXPORT void nvtx_markers_abi_timeline(const char *line, size_t length) {
    const uint64_t began = nm_mono_ns();
    if (nvtx_markers_abi_active() == 0 || line == NULL) return;
    nm_tap_line(line, length, began);
}

NM_EXPORT void nvtx_markers_abi_tap_pause(int32_t pause) { nm_tap_paused += pause != 0 ? 1 : -1; }
