/* A stand-in for a profiler: an NVTX consumer that writes down what was emitted. Loaded through NVTX_INJECTION64_PATH.
 *
 * FAKE_NVTX_LOG      file to append to: one line an event, tab separated:
 *                    mono_ns pid tid kind domain category text payload range   (empty where there is none)
 * FAKE_NVTX_HOSTILE  what a tool may do inside a callback: lock, print, errno, write (comma separated) */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <nvtx3/nvToolsExt.h>

static int log_fd = -1;
static int hostile_lock, hostile_print, hostile_errno, hostile_write;
static pthread_mutex_t tool_mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t ranges;

struct name {
    char *text;
};

static void record(const char *kind, const char *domain, unsigned category, const char *text, const char *payload,
                   uint64_t range) {
    char line[2048];
    struct timespec now;
    if (log_fd < 0 && !hostile_lock && !hostile_print && !hostile_write && !hostile_errno) return; /* for measuring */
    clock_gettime(CLOCK_MONOTONIC, &now);
    const int length = snprintf(line, sizeof line, "%lld\t%ld\t%ld\t%s\t%s\t%u\t%s\t%s\t%llu\n",
                                now.tv_sec * 1000000000LL + now.tv_nsec, syscall(SYS_getpid), syscall(SYS_gettid), kind,
                                domain == NULL ? "" : domain, category, text == NULL ? "" : text, payload,
                                (unsigned long long)range);
    if (log_fd >= 0) syscall(SYS_write, log_fd, line, (size_t)length);
    if (hostile_lock) {
        struct timespec nap = {0, 20000};
        pthread_mutex_lock(&tool_mutex);
        nanosleep(&nap, NULL);
        pthread_mutex_unlock(&tool_mutex);
    }
    if (hostile_print) fprintf(stderr, "TIMELINE,0,FROM_TOOL,tool,\n");
    if (hostile_write && write(2, "TIMELINE,0,FROM_TOOL,tool,\n", 27) < 0) abort();
    if (hostile_errno) errno = 77;
}

static void record_event(const char *kind, nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event, uint64_t range) {
    char payload[32] = "";
    const char *text = event->messageType == NVTX_MESSAGE_TYPE_REGISTERED ? ((struct name *)event->message.registered)->text
                       : event->messageType == NVTX_MESSAGE_TYPE_ASCII    ? event->message.ascii
                                                                          : NULL;
    if (event->payloadType == NVTX_PAYLOAD_TYPE_UNSIGNED_INT64)
        snprintf(payload, sizeof payload, "%llu", (unsigned long long)event->payload.ullValue);
    if (event->payloadType == NVTX_PAYLOAD_TYPE_INT64)
        snprintf(payload, sizeof payload, "%lld", (long long)event->payload.llValue);
    record(kind, ((struct name *)domain)->text, event->category, text, payload, range);
}

static nvtxDomainHandle_t domain_create(const char *text) {
    struct name *name = malloc(sizeof *name);
    name->text = strdup(text);
    record("domain", text, 0, NULL, "", 0);
    return (nvtxDomainHandle_t)name;
}
static nvtxStringHandle_t register_string(nvtxDomainHandle_t domain, const char *text) {
    struct name *name = malloc(sizeof *name);
    (void)domain;
    name->text = strdup(text);
    return (nvtxStringHandle_t)name;
}
static void name_category(nvtxDomainHandle_t domain, uint32_t category, const char *text) {
    record("category", ((struct name *)domain)->text, category, text, "", 0);
}
static void mark(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event) { record_event("mark", domain, event, 0); }
static int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event) {
    record_event("push", domain, event, 0);
    return 0;
}
static int pop(nvtxDomainHandle_t domain) {
    record("pop", ((struct name *)domain)->text, 0, NULL, "", 0);
    return 0;
}
static nvtxRangeId_t start(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event) {
    const uint64_t range = atomic_fetch_add(&ranges, 1) + 1;
    record_event("start", domain, event, range);
    return range;
}
static void end(nvtxDomainHandle_t domain, nvtxRangeId_t range) {
    record("end", ((struct name *)domain)->text, 0, NULL, "", range);
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table) {
    const NvtxExportTableCallbacks *callbacks = get_export_table(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table = NULL;
    unsigned int size = 0;
    const char *path = getenv("FAKE_NVTX_LOG"), *hostile = getenv("FAKE_NVTX_HOSTILE");
    if (log_fd < 0 && path != NULL) log_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (hostile != NULL) {
        hostile_lock = strstr(hostile, "lock") != NULL;
        hostile_print = strstr(hostile, "print") != NULL;
        hostile_errno = strstr(hostile, "errno") != NULL;
        hostile_write = strstr(hostile, "write") != NULL;
    }
    if (callbacks == NULL || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)) return 0;
    if (size <= NVTX_CBID_CORE2_DomainCreateA) return 0;
    *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)domain_create;
    *table[NVTX_CBID_CORE2_DomainRegisterStringA] = (NvtxFunctionPointer)register_string;
    *table[NVTX_CBID_CORE2_DomainNameCategoryA] = (NvtxFunctionPointer)name_category;
    *table[NVTX_CBID_CORE2_DomainMarkEx] = (NvtxFunctionPointer)mark;
    *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push;
    *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)pop;
    *table[NVTX_CBID_CORE2_DomainRangeStartEx] = (NvtxFunctionPointer)start;
    *table[NVTX_CBID_CORE2_DomainRangeEnd] = (NvtxFunctionPointer)end;
    return 1;
}
