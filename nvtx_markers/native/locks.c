/* pthread mutexes, condition waits and reader-writer locks. A lock is first tried: only one that is taken costs more than
 * a few nanoseconds. For every type of mutex trying, and then locking if it is busy, gives the same result as locking. */
#include "internal.h"
#include "real.h"

#include <errno.h>
#include <gnu/libc-version.h>
#include <stdlib.h>

enum { MUTEX_PARTS = NM_PART_MUTEX | NM_PART_HELD | NM_PART_DRIVER };

NM_REAL(int, pthread_mutex_lock, (pthread_mutex_t * mutex), (mutex), ENOSYS)
NM_REAL(int, pthread_mutex_trylock, (pthread_mutex_t * mutex), (mutex), ENOSYS)
NM_REAL(int, pthread_mutex_unlock, (pthread_mutex_t * mutex), (mutex), ENOSYS)
NM_REAL(int, pthread_mutex_timedlock, (pthread_mutex_t * mutex, const struct timespec *until), (mutex, until), ENOSYS)
NM_REAL(int, pthread_mutex_clocklock, (pthread_mutex_t * mutex, clockid_t clock, const struct timespec *until),
        (mutex, clock, until), ENOSYS)
NM_REAL(int, pthread_cond_wait, (pthread_cond_t * condition, pthread_mutex_t *mutex), (condition, mutex), ENOSYS)
NM_REAL(int, pthread_cond_timedwait, (pthread_cond_t * condition, pthread_mutex_t *mutex, const struct timespec *until),
        (condition, mutex, until), ENOSYS)
NM_REAL(int, pthread_cond_clockwait,
        (pthread_cond_t * condition, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until),
        (condition, mutex, clock, until), ENOSYS)

enum how { PLAIN, TIMED, CLOCKED };

static int lock_for_real(pthread_mutex_t *mutex, enum how how, clockid_t clock, const struct timespec *until) {
    if (how == TIMED) return pthread_mutex_timedlock_call(mutex, until);
    if (how == CLOCKED) return pthread_mutex_clocklock_call(mutex, clock, until);
    return pthread_mutex_lock_call(mutex);
}

static bool acquired(int result) { return result == 0 || result == EOWNERDEAD; }

/* The mutex is taken: whoever called us waits. */
static __attribute__((noinline)) int wait_for_mutex(pthread_mutex_t *mutex, const void *caller, enum how how,
                                                    clockid_t clock, const struct timespec *until) {
    const enum nm_owner owner = nm_emitting != 0 ? NM_OWNER_TOOL : nm_owner_of(caller);
    if (owner == NM_OWNER_TOOL) return lock_for_real(mutex, how, clock, until);
    const uint32_t part = owner == NM_OWNER_DRIVER ? NM_PART_DRIVER : NM_PART_MUTEX;
    const enum nm_category category = owner == NM_OWNER_DRIVER ? NM_DRIVER_LOCK : NM_MUTEX_WAIT;
    const bool pushed = nm_on(part) && nm_wait_worth_marking(mutex) && nm_push(category, (uint64_t)(uintptr_t)mutex);
    const uint64_t began = nm_mono_ns();
    const int result = lock_for_real(mutex, how, clock, until);
    const uint64_t ended = nm_mono_ns();
    if (pushed) nm_pop();
    if (owner == NM_OWNER_APP) nm_wait_note(mutex, ended - began);
    return result;
}

/* Kept apart from the wrappers, so that these are a load, a test and a jump while no tool listens. */
static __attribute__((noinline)) int lock(pthread_mutex_t *mutex, const void *caller, enum how how, clockid_t clock,
                                          const struct timespec *until) {
    int result = pthread_mutex_trylock_call(mutex);
    /* Any other answer is what locking would give, and asking again may not: see `robust` in the tests. */
    if (NM_UNLIKELY(result == EBUSY)) result = wait_for_mutex(mutex, caller, how, clock, until);
    if (nm_maybe_hot(mutex) && acquired(result)) nm_held_begin(mutex);
    return result;
}

NM_EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex) {
    if (!nm_on(MUTEX_PARTS)) return pthread_mutex_lock_call(mutex);
    return lock(mutex, __builtin_return_address(0), PLAIN, 0, NULL);
}

NM_EXPORT int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until) {
    if (!nm_on(MUTEX_PARTS)) return pthread_mutex_timedlock_call(mutex, until);
    return lock(mutex, __builtin_return_address(0), TIMED, 0, until);
}

NM_EXPORT int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until) {
    if (!nm_on(MUTEX_PARTS)) return pthread_mutex_clocklock_call(mutex, clock, until);
    return lock(mutex, __builtin_return_address(0), CLOCKED, clock, until);
}

static __attribute__((noinline)) int trylock(pthread_mutex_t *mutex) {
    const int result = pthread_mutex_trylock_call(mutex);
    if (nm_maybe_hot(mutex) && acquired(result)) nm_held_begin(mutex);
    return result;
}

NM_EXPORT int pthread_mutex_trylock(pthread_mutex_t *mutex) {
    return nm_on(NM_PART_HELD) ? trylock(mutex) : pthread_mutex_trylock_call(mutex);
}

/* The range ends before the lock is free: holds of one mutex never overlap. */
static __attribute__((noinline)) int unlock_held(pthread_mutex_t *mutex) {
    nm_held_end(mutex);
    return pthread_mutex_unlock_call(mutex);
}

NM_EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex) {
    if (NM_UNLIKELY(nm_held_count != 0)) return unlock_held(mutex);
    return pthread_mutex_unlock_call(mutex);
}

/* A condition wait gives the mutex up: the hold is two holds. */
NM_EXPORT int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex) {
    const bool paused = nm_held_count != 0 && nm_held_pause(mutex);
    const int result = pthread_cond_wait_call(condition, mutex);
    if (paused) nm_held_begin(mutex);
    return result;
}

NM_EXPORT int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until) {
    const bool paused = nm_held_count != 0 && nm_held_pause(mutex);
    const int result = pthread_cond_timedwait_call(condition, mutex, until);
    if (paused) nm_held_begin(mutex);
    return result;
}

NM_EXPORT int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock,
                                     const struct timespec *until) {
    const bool paused = nm_held_count != 0 && nm_held_pause(mutex);
    const int result = pthread_cond_clockwait_call(condition, mutex, clock, until);
    if (paused) nm_held_begin(mutex);
    return result;
}

/* ---- reader-writer locks: only the driver's own ---- */

NM_REAL(int, pthread_rwlock_rdlock, (pthread_rwlock_t * lock), (lock), ENOSYS)
NM_REAL(int, pthread_rwlock_wrlock, (pthread_rwlock_t * lock), (lock), ENOSYS)
NM_REAL(int, pthread_rwlock_tryrdlock, (pthread_rwlock_t * lock), (lock), ENOSYS)
NM_REAL(int, pthread_rwlock_trywrlock, (pthread_rwlock_t * lock), (lock), ENOSYS)

/* Trying a reader-writer lock can hang other threads before glibc 2.30 (its bug 23844). */
static bool trying_is_safe(void) {
    static _Atomic int known; /* 1 yes, -1 no */
    int answer = atomic_load_explicit(&known, memory_order_relaxed);
    if (answer == 0) {
        char *rest;
        const unsigned long major = strtoul(gnu_get_libc_version(), &rest, 10);
        const unsigned long minor = *rest == '.' ? strtoul(rest + 1, NULL, 10) : 0;
        answer = major > 2 || (major == 2 && minor >= 30) ? 1 : -1;
        atomic_store_explicit(&known, answer, memory_order_relaxed);
    }
    return answer == 1;
}

static __attribute__((noinline)) int wait_for_rwlock(pthread_rwlock_t *rwlock, int (*really)(pthread_rwlock_t *),
                                                     const void *caller) {
    const bool ours = nm_emitting == 0 && nm_owner_of(caller) == NM_OWNER_DRIVER;
    const bool pushed = ours && nm_push(NM_DRIVER_LOCK, (uint64_t)(uintptr_t)rwlock);
    const int result = really(rwlock);
    if (pushed) nm_pop();
    return result;
}

static int really_read(pthread_rwlock_t *lock) { return pthread_rwlock_rdlock_call(lock); }
static int really_write(pthread_rwlock_t *lock) { return pthread_rwlock_wrlock_call(lock); }

NM_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *lock) {
    if (!nm_on(NM_PART_DRIVER) || !trying_is_safe()) return pthread_rwlock_rdlock_call(lock);
    const int result = pthread_rwlock_tryrdlock_call(lock);
    return result != EBUSY ? result : wait_for_rwlock(lock, really_read, __builtin_return_address(0));
}

NM_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *lock) {
    if (!nm_on(NM_PART_DRIVER) || !trying_is_safe()) return pthread_rwlock_wrlock_call(lock);
    const int result = pthread_rwlock_trywrlock_call(lock);
    return result != EBUSY ? result : wait_for_rwlock(lock, really_write, __builtin_return_address(0));
}
