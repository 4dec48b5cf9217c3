/* NM_REAL(result, name, parameters, arguments, missing) defines name##_call: the function behind ours.
 *
 * It is looked up at the first call. Where libc's own function comes next it is called directly. Where another wrapper
 * comes next (a sanitizer's, another preloaded library's), a per-thread guard breaks any circle: called again from inside
 * that wrapper we go straight to libc. */
#ifndef NVTX_MARKERS_REAL_H
#define NVTX_MARKERS_REAL_H

#include "internal.h"

/* libc's own function of that name, whoever wraps it. */
NM_HIDDEN void *nm_libc(const char *name);
/* Inside a wrapper that comes behind ours. */
NM_TLS_SHARED int nm_forwarding;

/* Set while in there, and unset however we leave: a cancelled thread unwinds through our frame and goes on in its clean-up
 * handlers. */
static inline void nm_unset(int **flag) { **flag = 0; }
#define NM_FORWARDING                                                                                   \
    nm_forwarding = 1;                                                                                  \
    __attribute__((cleanup(nm_unset), unused)) int *forwarding = &nm_forwarding

#define NM_REAL(result, name, parameters, arguments, missing)                                           \
    typedef result(*name##_function) parameters;                                                        \
    static result name##_first parameters;                                                              \
    static name##_function name##_pointer = name##_first;                                               \
    static name##_function name##_behind, name##_libc;                                     \
    static result name##_guarded parameters {                                                           \
        if (nm_forwarding != 0) return __atomic_load_n(&name##_libc, __ATOMIC_RELAXED) arguments;            \
        NM_FORWARDING;                                                                                  \
        return __atomic_load_n(&name##_behind, __ATOMIC_RELAXED) arguments;                                 \
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
        return __atomic_load_n(&name##_pointer, __ATOMIC_ACQUIRE) arguments;                            \
    }

#endif
