/* Stand-ins, built twice: as libcuda.so.1 (a driver with a lock of its own) and as libcudart.so.13 (calls that only answer). */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static void nap_us(long us) {
    const struct timespec time = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&time, NULL);
}

#ifdef FAKE_DRIVER
int cuda_like_read(pthread_rwlock_t *lock, long us) {
    if (pthread_rwlock_rdlock(lock) != 0) return 1;
    nap_us(us);
    return pthread_rwlock_unlock(lock);
}
int cuda_like_write(pthread_rwlock_t *lock, long us) {
    if (pthread_rwlock_wrlock(lock) != 0) return 1;
    nap_us(us);
    return pthread_rwlock_unlock(lock);
}
#else
struct dim3 {
    unsigned x, y, z;
};
int cudaMalloc(void **pointer, size_t size) {
    nap_us(500);
    *pointer = malloc(size);
    return 0;
}
int cudaFree(void *pointer) {
    free(pointer);
    return 0;
}
int cudaDeviceSynchronize(void) {
    nap_us(500);
    return 0;
}
/* Sums show that every argument arrived, those on the stack too. */
int cudaMemcpy2DAsync(void *to, size_t a, const void *from, size_t b, size_t c, size_t d, int e, void *stream) {
    return to == from ? (int)(a + b + c + d) + e + (int)(size_t)stream : -1;
}
int cudaLaunchKernel(const void *kernel, struct dim3 grid, struct dim3 block, void **values, size_t shared, void *stream) {
    if (kernel == NULL || values != NULL) return -1;
    return (int)(grid.x + grid.y + grid.z + block.x + block.y + block.z + shared + (size_t)stream);
}
#endif
