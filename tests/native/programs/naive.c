/* How not to do it: forwards to whatever dlsym(RTLD_NEXT) hands out. Shows that the stand-ins crash a naive wrapper. */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <pthread.h>

int pthread_mutex_lock(pthread_mutex_t *mutex) {
    static int (*real)(pthread_mutex_t *);
    if (real == NULL) real = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock");
    return real(mutex);
}
