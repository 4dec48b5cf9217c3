/* Which mutexes get a `mutex_held` range: those that threads have waited for long enough, and those named by symbol. */
#include "internal.h"

#include <stdlib.h>

uint8_t nm_hot_filter[256];
NM_TLS_DEFINE int nm_held_count;

enum { SLOTS = 1024, PROBES = 16, MAX_HELD = 8, MAX_CHOSEN = 16 };

/* A wait below these is not worth a range, a hold below that neither. */
static const uint64_t quiet_waits = 256, quiet_mean_ns = 2000;
static const uint64_t hot_mean_ns = 20000;
static const uint64_t quiet_holds = 1000, quiet_hold_mean_ns = 5000;
static uint64_t hot_total_ns = 1000000;

static struct slot {
    _Atomic uintptr_t mutex;
    _Atomic uint64_t waits, wait_ns, holds, hold_ns;
    _Atomic int hot; /* 1 hold ranges on, -1 given up: held too briefly to be worth it */
} slots[SLOTS];

static struct {
    uintptr_t start, end;
} chosen[MAX_CHOSEN];
static int chosen_count;

/* Mutexes this thread holds visibly, in no order: unlock order is not lock order. */
NM_TLS struct {
    pthread_mutex_t *mutex;
    uint64_t range, began_ns;
    int depth;
} held[MAX_HELD];

static struct slot *slot_of(const pthread_mutex_t *mutex, bool make) {
    const uintptr_t address = (uintptr_t)mutex;
    size_t at = (size_t)((address >> 4) * 0x9E3779B97F4A7C15ull >> 54) % SLOTS;
    for (int probe = 0; probe < PROBES; probe++, at = (at + 1) % SLOTS) {
        uintptr_t there = atomic_load_explicit(&slots[at].mutex, memory_order_relaxed);
        if (there == address) return &slots[at];
        if (there != 0) continue;
        if (!make) return NULL;
        if (atomic_compare_exchange_strong(&slots[at].mutex, &there, address) || there == address) return &slots[at];
    }
    return NULL; /* full here: this mutex goes without statistics */
}

static void open_filter(const void *address) { __atomic_store_n(&nm_hot_filter[nm_hash8(address)], 1, __ATOMIC_RELAXED); }

static void choose(uintptr_t address, size_t size) {
    if (chosen_count == MAX_CHOSEN || size > 1u << 20) return;
    chosen[chosen_count].start = address;
    chosen[chosen_count++].end = address + size;
    for (uintptr_t at = address; at < address + size; at += sizeof(void *)) open_filter((const void *)at);
}

static bool is_chosen(const pthread_mutex_t *mutex) {
    for (int i = 0; i < chosen_count; i++)
        if ((uintptr_t)mutex >= chosen[i].start && (uintptr_t)mutex < chosen[i].end) return true;
    return false;
}

void nm_held_start(void) {
    const char *after = getenv("NVTX_MARKERS_HOLD_AFTER_US");
    const char *symbols = getenv("NVTX_MARKERS_HOLD_SYMBOLS");
    if (after != NULL && *after >= '0' && *after <= '9') hot_total_ns = strtoull(after, NULL, 10) * 1000;
    if (symbols != NULL && *symbols != '\0') nm_program_symbols(symbols, choose);
}

void nm_wait_note(pthread_mutex_t *mutex, uint64_t wait_ns) {
    struct slot *slot = slot_of(mutex, true);
    if (slot == NULL) return;
    const uint64_t waits = atomic_fetch_add_explicit(&slot->waits, 1, memory_order_relaxed) + 1;
    const uint64_t total = atomic_fetch_add_explicit(&slot->wait_ns, wait_ns, memory_order_relaxed) + wait_ns;
    const bool long_waits = total / waits >= hot_mean_ns || hot_total_ns == 0;
    int cold = 0;
    if (total >= hot_total_ns && long_waits && atomic_compare_exchange_strong(&slot->hot, &cold, 1)) open_filter(mutex);
}

bool nm_wait_worth_marking(pthread_mutex_t *mutex) {
    const struct slot *slot = slot_of(mutex, false);
    if (slot == NULL) return true;
    const uint64_t waits = atomic_load_explicit(&slot->waits, memory_order_relaxed);
    const uint64_t total = atomic_load_explicit(&slot->wait_ns, memory_order_relaxed);
    return waits < quiet_waits || total / waits >= quiet_mean_ns || is_chosen(mutex);
}

static bool recursive(const pthread_mutex_t *mutex) {
    return (mutex->__data.__kind & 3) == PTHREAD_MUTEX_RECURSIVE_NP;
}

static void end_at(int i) {
    struct slot *slot = slot_of(held[i].mutex, false);
    nm_range_end(held[i].range);
    if (slot != NULL) {
        const uint64_t ns = nm_mono_ns() - held[i].began_ns;
        const uint64_t holds = atomic_fetch_add_explicit(&slot->holds, 1, memory_order_relaxed) + 1;
        const uint64_t total = atomic_fetch_add_explicit(&slot->hold_ns, ns, memory_order_relaxed) + ns;
        if (holds >= quiet_holds && total / holds < quiet_hold_mean_ns) atomic_store(&slot->hot, -1);
    }
    held[i] = held[--nm_held_count];
}

void nm_held_begin(pthread_mutex_t *mutex) {
    const struct slot *slot;
    for (int i = 0; i < nm_held_count; i++) {
        if (held[i].mutex != mutex) continue;
        if (recursive(mutex)) {
            held[i].depth++;
            return;
        }
        end_at(i); /* another thread unlocked it */
        break;
    }
    if (nm_held_count == MAX_HELD || !nm_on(NM_PART_HELD)) return;
    slot = slot_of(mutex, false);
    if (!is_chosen(mutex) && (slot == NULL || atomic_load_explicit(&slot->hot, memory_order_relaxed) != 1)) return;
    const uint64_t range = nm_range_start(NM_MUTEX_HELD, (uint64_t)(uintptr_t)mutex);
    if (range == 0) return;
    held[nm_held_count].mutex = mutex;
    held[nm_held_count].range = range;
    held[nm_held_count].began_ns = nm_mono_ns();
    held[nm_held_count++].depth = 1;
}

void nm_held_end(pthread_mutex_t *mutex) {
    for (int i = 0; i < nm_held_count; i++) {
        if (held[i].mutex != mutex) continue;
        if (--held[i].depth == 0) end_at(i);
        return;
    }
}

bool nm_held_pause(pthread_mutex_t *mutex) {
    for (int i = 0; i < nm_held_count; i++) {
        if (held[i].mutex != mutex) continue;
        end_at(i);
        return true;
    }
    return false;
}
