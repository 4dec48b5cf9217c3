/* NM_REAL(result, name, parameters, arguments, missing) makes three ways to the function behind ours:
 *
 * name##_call    straight on: libc's own, or the next wrapper (a sanitizer's, say). Where a wrapper comes next, a per-thread
 *                guard breaks any circle: called again from inside that wrapper we go to libc.
 * name##_relay   through a profiler's own stub for that function, if it has one, for callers that are not the profiler.
 * name##_find_stub   asks for that stub; called once at start.
 *
 * The function behind is looked up at the first call. */
#ifndef NVTX_MARKERS_REAL_H
#define NVTX_MARKERS_REAL_H

#include "internal.h"

/* libc's own function of that name, whoever wraps it. */
NM_HIDDEN void *nm_libc(const char *name);
/* What a profiler that wraps dlsym gives out instead of libc's function, or NULL. */
NM_HIDDEN void *nm_stub(const char *name);
/* Inside a wrapper or a stub of somebody else. */
NM_TLS_SHARED int nm_forwarding;

/* Set while in there, and unset however we leave: a cancelled thread unwinds through our frame and goes on in its clean-up
 * handlers. */
static inline void nm_unset(int **flag) { **flag = 0; }
#define NM_FORWARDING                                                                                   \
    nm_forwarding = 1;                                                                                  \
    __attribute__((cleanup(nm_unset), unused)) int *forwarding = &nm_forwarding

/* Whether a call from there shall be seen by the profiler: its own calls, and calls made on its behalf, must not. */
static inline bool nm_to_be_relayed(const void *caller) {
    return nm_forwarding == 0 && nm_emitting == 0 && nm_owner_of(caller) != NM_OWNER_TOOL;
}

#define NM_PARAMETERS(...) __VA_ARGS__

#define NM_REAL(result, name, parameters, arguments, missing)                                           \
    typedef result(*name##_function) parameters;                                                        \
    static result name##_first parameters;                                                              \
    static name##_function name##_pointer = name##_first;                                               \
    static name##_function name##_behind, name##_libc, name##_stub;                                     \
    static result name##_guarded parameters {                                                           \
        if (nm_forwarding != 0) return name##_libc arguments;                                           \
        NM_FORWARDING;                                                                                  \
        return name##_behind arguments;                                                                 \
    }                                                                                                   \
    static result name##_first parameters {                                                             \
        name##_function behind = (name##_function)nm_next(#name);                                       \
        name##_function libc = (name##_function)nm_libc(#name);                                         \
        if (libc == NULL) libc = behind;                                                                \
        if (behind == NULL) return missing;                                                             \
        __atomic_store_n(&name##_behind, behind, __ATOMIC_RELEASE);                                     \
        __atomic_store_n(&name##_libc, libc, __ATOMIC_RELEASE);                                         \
        __atomic_store_n(&name##_pointer, behind == libc ? libc : name##_guarded, __ATOMIC_RELEASE);    \
        return __atomic_load_n(&name##_pointer, __ATOMIC_ACQUIRE) arguments;                            \
    }                                                                                                   \
    static inline result name##_call parameters {                                                       \
        return __atomic_load_n(&name##_pointer, __ATOMIC_RELAXED) arguments;                            \
    }                                                                                                   \
    static __attribute__((noinline)) result name##_stubbed parameters {                                 \
        NM_FORWARDING;                                                                                  \
        return name##_stub arguments;                                                                   \
    }                                                                                                   \
    static inline result name##_relay(const void *caller, NM_PARAMETERS parameters) {                   \
        if (nm_on(NM_RELAY) && name##_stub != NULL && nm_to_be_relayed(caller))                         \
            return name##_stubbed arguments;                                                            \
        return name##_call arguments;                                                                   \
    }                                                                                                   \
    static __attribute__((unused)) void name##_find_stub(void) { name##_stub = (name##_function)nm_stub(#name); }

#endif
