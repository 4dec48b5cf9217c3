/* CUDA runtime calls by category, for programs that link libcudart dynamically. Which of several loaded runtimes a call
 * goes to is decided by what its caller was linked with. Types are CUDA's own in size and passing, so no CUDA header is
 * needed. */
#include "internal.h"

typedef int status; /* cudaError_t */
typedef void *handle;
struct dim3 {
    unsigned x, y, z;
};
enum { NOT_SUPPORTED = 801 };

/* One small cache a call: a return address belongs to one object, so to one runtime. */
enum { WAYS = 8 };
struct site {
    _Atomic uintptr_t caller;
    _Atomic uintptr_t target;
};

static uintptr_t target_of(struct site *sites, const char *name, const void *caller) {
    const uintptr_t address = (uintptr_t)caller;
    struct site *site = &sites[(address >> 2) % WAYS];
    if (atomic_load_explicit(&site->caller, memory_order_acquire) == address) {
        const uintptr_t target = atomic_load_explicit(&site->target, memory_order_acquire);
        if (target != 0 && atomic_load_explicit(&site->caller, memory_order_acquire) == address) return target;
    }
    const uintptr_t target = (uintptr_t)nm_next_for_caller(name, "libcudart.so", caller);
    if (target == 0) return 0;
    /* Emptied first: a reader sees the old pair, no pair, or the new pair. */
    atomic_store(&site->caller, 0);
    atomic_store(&site->target, target);
    atomic_store(&site->caller, address);
    return target;
}

#define CUDA_CALL(category, name, parameters, arguments)                                         \
    NM_EXPORT status name parameters;                                                            \
    NM_EXPORT status name parameters {                                                           \
        static struct site sites[WAYS];                                                          \
        const uintptr_t target = target_of(sites, #name, __builtin_return_address(0));           \
        if (NM_UNLIKELY(target == 0)) return NOT_SUPPORTED;                                      \
        status(*const call) parameters = (status(*) parameters)target;                           \
        if (!nm_on(NM_PART_CUDA)) return call arguments;                                         \
        const bool pushed = nm_push(category, 0);                                                \
        const status result = call arguments;                                                    \
        if (pushed) nm_pop();                                                                    \
        return result;                                                                           \
    }

CUDA_CALL(NM_DEVICE_SYNC, cudaDeviceSynchronize, (void), ())
CUDA_CALL(NM_POOL_TRIM, cudaMemPoolTrimTo, (handle pool, size_t keep), (pool, keep))
CUDA_CALL(NM_POOL_TRIM, cudaDeviceGetDefaultMemPool, (handle * pool, int device), (pool, device))
CUDA_CALL(NM_POOL_TRIM, cudaMemPoolSetAttribute, (handle pool, int attribute, void *value), (pool, attribute, value))
CUDA_CALL(NM_POOL_TRIM, cudaMemPoolGetAttribute, (handle pool, int attribute, void *value), (pool, attribute, value))
CUDA_CALL(NM_MEM_INFO, cudaMemGetInfo, (size_t * free_bytes, size_t *all_bytes), (free_bytes, all_bytes))
CUDA_CALL(NM_ALLOC, cudaMalloc, (void **pointer, size_t size), (pointer, size))
CUDA_CALL(NM_ALLOC, cudaMallocHost, (void **pointer, size_t size), (pointer, size))
CUDA_CALL(NM_ALLOC, cudaHostAlloc, (void **pointer, size_t size, unsigned flags), (pointer, size, flags))
CUDA_CALL(NM_ALLOC, cudaMallocAsync, (void **pointer, size_t size, handle stream), (pointer, size, stream))
CUDA_CALL(NM_ALLOC, cudaMallocFromPoolAsync, (void **pointer, size_t size, handle pool, handle stream),
          (pointer, size, pool, stream))
CUDA_CALL(NM_HOST_REGISTER, cudaHostRegister, (void *pointer, size_t size, unsigned flags), (pointer, size, flags))
CUDA_CALL(NM_HOST_UNREGISTER, cudaHostUnregister, (void *pointer), (pointer))
CUDA_CALL(NM_HOST_UNREGISTER, cudaFreeHost, (void *pointer), (pointer))
CUDA_CALL(NM_UPLOAD, cudaMemcpy, (void *to, const void *from, size_t size, int kind), (to, from, size, kind))
CUDA_CALL(NM_UPLOAD, cudaMemcpyAsync, (void *to, const void *from, size_t size, int kind, handle stream),
          (to, from, size, kind, stream))
CUDA_CALL(NM_UPLOAD, cudaMemcpy2D,
          (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind),
          (to, to_pitch, from, from_pitch, width, height, kind))
CUDA_CALL(NM_UPLOAD, cudaMemcpy2DAsync,
          (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind,
           handle stream),
          (to, to_pitch, from, from_pitch, width, height, kind, stream))
CUDA_CALL(NM_FREE, cudaFree, (void *pointer), (pointer))
CUDA_CALL(NM_FREE, cudaFreeAsync, (void *pointer, handle stream), (pointer, stream))
CUDA_CALL(NM_FREE, cudaEventDestroy, (handle event), (event))
CUDA_CALL(NM_FREE, cudaStreamDestroy, (handle stream), (stream))
CUDA_CALL(NM_LAUNCH, cudaLaunchKernel,
          (const void *kernel, struct dim3 grid, struct dim3 block, void **values, size_t shared, handle stream),
          (kernel, grid, block, values, shared, stream))
CUDA_CALL(NM_LAUNCH, cudaLaunchCooperativeKernel,
          (const void *kernel, struct dim3 grid, struct dim3 block, void **values, size_t shared, handle stream),
          (kernel, grid, block, values, shared, stream))
CUDA_CALL(NM_LAUNCH, cudaLaunchKernelExC, (const void *config, const void *kernel, void **values),
          (config, kernel, values))
CUDA_CALL(NM_LAUNCH, cudaGraphLaunch, (handle graph, handle stream), (graph, stream))
