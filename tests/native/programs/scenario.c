/* Small programs in one, each a way in which a library loaded beside a program can break it. `scenario NAME [N]`. */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                    \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);         \
            _exit(99);                                                      \
        }                                                                   \
    } while (0)

static pthread_mutex_t gpu_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t together;

static void nap_us(long us) {
    struct timespec time = {us / 1000000, us % 1000000 * 1000};
    while (nanosleep(&time, &time) != 0 && errno == EINTR) {}
}

static struct timespec in_us(clockid_t clock, long us) {
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_nsec += us * 1000;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

static void two(void *(*work)(void *)) {
    pthread_t threads[2];
    CHECK(pthread_barrier_init(&together, NULL, 2) == 0);
    for (intptr_t i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

/* ---- locks ---- */

static void *contend_work(void *which) {
    pthread_barrier_wait(&together);
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_mutex_lock(&gpu_mutex) == 0);
        nap_us(4000);
        CHECK(pthread_mutex_unlock(&gpu_mutex) == 0);
    }
    return which;
}
static int contend(void) {
    two(contend_work);
    return 0;
}

static void *brief_work(void *which) {
    pthread_barrier_wait(&together);
    for (int i = 0; i < 20000; i++) {
        pthread_mutex_lock(&gpu_mutex);
        pthread_mutex_unlock(&gpu_mutex);
    }
    return which;
}
static int brief(void) {
    two(brief_work);
    return 0;
}

/* Every type of mutex answers as it always does. */
static int kinds(void) {
    pthread_mutexattr_t how;
    pthread_mutex_t mutex;
    const struct timespec soon = in_us(CLOCK_REALTIME, 3000), soon_mono = in_us(CLOCK_MONOTONIC, 6000);
    pthread_mutexattr_init(&how);

    pthread_mutexattr_settype(&how, PTHREAD_MUTEX_RECURSIVE);
    CHECK(pthread_mutex_init(&mutex, &how) == 0);
    CHECK(pthread_mutex_lock(&mutex) == 0 && pthread_mutex_lock(&mutex) == 0 && pthread_mutex_trylock(&mutex) == 0);
    CHECK(pthread_mutex_unlock(&mutex) == 0 && pthread_mutex_unlock(&mutex) == 0 && pthread_mutex_unlock(&mutex) == 0);
    CHECK(pthread_mutex_unlock(&mutex) == EPERM);
    CHECK(pthread_mutex_destroy(&mutex) == 0);

    pthread_mutexattr_settype(&how, PTHREAD_MUTEX_ERRORCHECK);
    CHECK(pthread_mutex_init(&mutex, &how) == 0);
    CHECK(pthread_mutex_lock(&mutex) == 0 && pthread_mutex_lock(&mutex) == EDEADLK && pthread_mutex_trylock(&mutex) == EBUSY);
    CHECK(pthread_mutex_timedlock(&mutex, &soon) == EDEADLK);
    CHECK(pthread_mutex_unlock(&mutex) == 0 && pthread_mutex_unlock(&mutex) == EPERM);
    CHECK(pthread_mutex_destroy(&mutex) == 0);

    pthread_mutexattr_settype(&how, PTHREAD_MUTEX_NORMAL);
    CHECK(pthread_mutex_init(&mutex, &how) == 0);
    CHECK(pthread_mutex_lock(&mutex) == 0 && pthread_mutex_timedlock(&mutex, &soon) == ETIMEDOUT);
    CHECK(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &soon_mono) == ETIMEDOUT);
    CHECK(pthread_mutex_unlock(&mutex) == 0 && pthread_mutex_destroy(&mutex) == 0);
    return 0;
}

static void *die_holding(void *mutex) {
    CHECK(pthread_mutex_lock(mutex) == 0);
    return NULL;
}
static int robust(void) {
    pthread_mutexattr_t how;
    pthread_mutex_t mutex;
    pthread_t thread;
    pthread_mutexattr_init(&how);
    pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST);
    CHECK(pthread_mutex_init(&mutex, &how) == 0);
    CHECK(pthread_create(&thread, NULL, die_holding, &mutex) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(pthread_mutex_lock(&mutex) == EOWNERDEAD);
    CHECK(pthread_mutex_unlock(&mutex) == 0); /* not made consistent */
    CHECK(pthread_mutex_lock(&mutex) == ENOTRECOVERABLE);
    return 0;
}

static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static int turns;
static void *turn_work(void *which) {
    const int me = (int)(intptr_t)which;
    pthread_mutex_lock(&gpu_mutex);
    for (int i = 0; i < 5; i++) {
        while (turns % 2 != me) pthread_cond_wait(&ready, &gpu_mutex);
        nap_us(2000); /* a hold that counts */
        turns++;
        pthread_cond_signal(&ready);
    }
    pthread_mutex_unlock(&gpu_mutex);
    return NULL;
}
/* A thread cancelled in a condition wait unwinds through our frame, and holds the mutex again. */
static void unlock_again(void *mutex) { CHECK(pthread_mutex_unlock(mutex) == 0); }
static void *cancelled_work(void *nothing) {
    pthread_mutex_lock(&gpu_mutex);
    pthread_cleanup_push(unlock_again, &gpu_mutex);
    for (;;) pthread_cond_wait(&ready, &gpu_mutex);
    pthread_cleanup_pop(0);
    return nothing;
}
static void *cancelled_in_write(void *pipe_end) {
    static char much[1 << 20];
    for (;;)
        if (write((int)(intptr_t)pipe_end, much, sizeof much) < 0) return NULL;
}
static int conditions(void) {
    pthread_t thread;
    void *result;
    int ends[2];
    struct timespec soon;
    two(turn_work);
    CHECK(turns == 10);
    soon = in_us(CLOCK_REALTIME, 2000);
    pthread_mutex_lock(&gpu_mutex);
    CHECK(pthread_cond_timedwait(&ready, &gpu_mutex, &soon) == ETIMEDOUT);
    soon = in_us(CLOCK_MONOTONIC, 2000);
    CHECK(pthread_cond_clockwait(&ready, &gpu_mutex, CLOCK_MONOTONIC, &soon) == ETIMEDOUT);
    pthread_mutex_unlock(&gpu_mutex);
    CHECK(pthread_create(&thread, NULL, cancelled_work, NULL) == 0);
    nap_us(3000);
    CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    CHECK(pthread_mutex_trylock(&gpu_mutex) == 0 && pthread_mutex_unlock(&gpu_mutex) == 0);
    CHECK(pipe(ends) == 0 && pthread_create(&thread, NULL, cancelled_in_write, (void *)(intptr_t)ends[1]) == 0);
    nap_us(3000);
    CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    return 0;
}

/* Holds that are not nested, and a mutex that another thread unlocks. */
static pthread_mutex_t other_mutex = PTHREAD_MUTEX_INITIALIZER;
static void *crossing_work(void *which) {
    pthread_barrier_wait(&together);
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&gpu_mutex);
        nap_us(2000);
        pthread_mutex_lock(&other_mutex);
        nap_us(2000);
        pthread_mutex_unlock(&gpu_mutex);
        nap_us(2000);
        pthread_mutex_unlock(&other_mutex);
    }
    return which;
}
static void *unlock_for_me(void *mutex) {
    CHECK(pthread_mutex_unlock(mutex) == 0);
    return NULL;
}
static int crossing(void) {
    pthread_t thread;
    two(crossing_work);
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&gpu_mutex);
        CHECK(pthread_create(&thread, NULL, unlock_for_me, &gpu_mutex) == 0 && pthread_join(thread, NULL) == 0);
    }
    return 0;
}

enum { HAMMERED = 5 };
static pthread_mutex_t hammered[HAMMERED] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                             PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static long counters[HAMMERED], hammer_count = 20000;
static void *hammer_work(void *which) {
    uint32_t random = 17u + (uint32_t)(intptr_t)which;
    for (long i = 0; i < hammer_count; i++) {
        random = random * 1664525u + 1013904223u;
        const unsigned at = random / 65536 % HAMMERED;
        if (random % 7 == 0) {
            if (pthread_mutex_trylock(&hammered[at]) != 0) pthread_mutex_lock(&hammered[at]);
        } else {
            pthread_mutex_lock(&hammered[at]);
        }
        counters[at]++;
        if (random % 4093 == 0) nap_us(50); /* some long holds, so that some become visible */
        pthread_mutex_unlock(&hammered[at]);
        if (random % 1021 == 0) fprintf(stderr, "TIMELINE,%ld,HAMMER,job,thread=%d\n", i, (int)(intptr_t)which);
    }
    return NULL;
}
static int hammer(void) {
    pthread_t threads[8];
    long sum = 0;
    for (intptr_t i = 0; i < 8; i++) CHECK(pthread_create(&threads[i], NULL, hammer_work, (void *)i) == 0);
    for (int i = 0; i < 8; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < HAMMERED; i++) sum += counters[i];
    CHECK(sum == 8 * hammer_count);
    printf("sum %ld\n", sum);
    return 0;
}

/* ---- lines ---- */

static void pieces(int fd, const char *const *texts) {
    for (; *texts != NULL; texts++) CHECK(write(fd, *texts, strlen(*texts)) == (ssize_t)strlen(*texts));
}

static int lines(void) {
    char longest[1400];
    setvbuf(stdout, NULL, _IOFBF, 4096);
    CHECK(write(2, "TIMELINE,1,WHOLE,job,\n", 22) == 22);
    pieces(2, (const char *const[]){"TIMELINE,", "2", ",", "NINE", ",", "job [1 2]", ",", "worker=0,partition=3", "\n", NULL});
    pieces(2, (const char *const[]){"TIM", "ELINE,3,TORN_PREFIX,", "job,", "\nTIMELINE,4,TWO_IN_ONE,job,\nnot ", "TIMELINE,", "5,NO,job,\n", NULL});
    pieces(1, (const char *const[]){"TIMELINE,6,STDOUT,job,\n", "TIMELINX,7,NO,job,\n", " TIMELINE,8,NO,job,\n", NULL});
    for (const char *at = "TIMELINE,9,BYTES,job,\n"; *at != '\0'; at++) CHECK(write(2, at, 1) == 1);
    struct iovec vector[] = {{"TIMELINE,10,", 12}, {"WRITEV,job", 10}, {",\nTIMELINE,11,SPLIT", 19}, {",job,\n", 6}};
    CHECK(writev(2, vector, 4) == 47);
    fprintf(stderr, "TIMELINE,%d,%s,%s,partition=%d\n", 12, "FPRINTF", "job", 4);
    fprintf(stderr, "%s,%d,FPRINTF_PERCENT,job,\n", "TIMELINE", 13);
    fprintf(stderr, "half a line ");
    fprintf(stderr, "TIMELINE,14,NO,job,\n");
    fputs("TIMELINE,15,FPUTS,", stderr), fputs("job,", stderr), fputc('\n', stderr);
    printf("TIMELINE,16,PRINTF,job,\n");
    puts("TIMELINE,17,PUTS,job,");
    fwrite("TIMELINE,18,FWRITE,job,\n", 1, 24, stdout);
    putchar('T'), fputs("IMELINE,19,PUTCHAR,job,", stdout), putc('\n', stdout);
    dprintf(2, "TIMELINE,%d,DPRINTF,job,\n", 20);
    fflush(stdout);
    memset(longest, 'x', sizeof longest);
    memcpy(longest, "TIMELINE,21,NO,", 15);
    longest[sizeof longest - 1] = '\n';
    CHECK(write(2, longest, sizeof longest) == sizeof longest);
    CHECK(write(2, "TIMELINE,22,CRLF,job,\r\n", 23) == 23);
    CHECK(write(2, "TIMELINE,23,BAD\x01\xff\xc3\xa9,job,\n", 25) == 25);
    CHECK(write(2, "TIMELINE,24,NO_NEWLINE,job,", 27) == 27);
    return 4;
}

/* A full pipe: the line goes out in two writes, the first one cut short by the kernel. */
static int short_writes(void) {
    static char filler[65536 - 10];
    int ends[2];
    CHECK(pipe2(ends, O_NONBLOCK) == 0);
    const int room = fcntl(ends[1], F_SETPIPE_SZ, 4096);
    const int keep = dup(2);
    CHECK(room == 4096 && dup2(ends[1], 2) == 2);
    memset(filler, 'f', sizeof filler);
    filler[4080 - 1] = '\n';
    CHECK(write(2, filler, 4080) == 4080);
    const char *line = "TIMELINE,1,SHORT,job,partition=12345\n";
    const size_t length = strlen(line);
    size_t done = 0;
    char sink[8192];
    while (done < length) {
        const ssize_t now = write(2, line + done, length - done);
        if (now > 0) done += (size_t)now;
        else {
            CHECK(errno == EAGAIN);
            CHECK(read(ends[0], sink, sizeof sink) > 0);
        }
    }
    dup2(keep, 2);
    return 0;
}

/* ---- processes ---- */

static int forks(void) {
    int status;
    fprintf(stderr, "TIMELINE,1,PARENT,job,\n");
    contend();
    const pid_t child = fork();
    if (child == 0) {
        fprintf(stderr, "TIMELINE,2,CHILD,job,\n");
        contend(); /* the tool's locks may be held for ever in here */
        _exit(5);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 5);
    fprintf(stderr, "TIMELINE,3,PARENT,job,\n");
    return 6;
}

static int forks_while_locked(void) {
    int status;
    contend(); /* the mutex is hot */
    pthread_mutex_lock(&gpu_mutex);
    const pid_t child = fork();
    if (child == 0) {
        pthread_mutex_unlock(&gpu_mutex);
        pthread_mutex_lock(&gpu_mutex);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    pthread_mutex_unlock(&gpu_mutex);
    return 0;
}

static int execs(const char *self) {
    int status;
    const pid_t child = vfork();
    if (child == 0) {
        execl(self, self, "after-exec", (char *)NULL);
        _exit(98);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 8);
    execl(self, self, "after-exec", (char *)NULL);
    return 97;
}

static volatile sig_atomic_t alarms;
static void on_alarm(int number) {
    static const char line[] = "TIMELINE,0,FROM_HANDLER,job,\n";
    const int saved = errno;
    (void)number;
    if (__atomic_add_fetch(&alarms, 1, __ATOMIC_RELAXED) % 50 == 0 && write(2, line, sizeof line - 1) < 0) _exit(96);
    errno = saved;
}
static int signals(void) {
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    struct itimerval {
        struct timeval interval, value;
    };
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    const struct itimerspec often = {{0, 200000}, {0, 200000}};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, 0, &often, NULL) == 0);
    contend();
    for (int i = 0; i < 300; i++) fprintf(stdout, "TIMELINE,%d,IN_SIGNALS,job,\n", i);
    CHECK(__atomic_load_n(&alarms, __ATOMIC_RELAXED) > 0);
    timer_delete(timer);
    return 0;
}

static int errno_kept(void) {
    errno = 42;
    fprintf(stderr, "TIMELINE,1,ERRNO,job,\n");
    CHECK(errno == 42);
    CHECK(write(2, "TIMELINE,2,ERRNO,job,\n", 22) == 22 && errno == 42);
    pthread_mutex_lock(&gpu_mutex);
    pthread_mutex_unlock(&gpu_mutex);
    CHECK(errno == 42);
    CHECK(write(-1, "TIMELINE,3,NO,job,\n", 19) == -1 && errno == EBADF);
    errno = ENOENT;
    fprintf(stderr, "TIMELINE,4,%m,job,\n");
    return 0;
}

static void at_exit(void) { contend(); }
static int exits(void) {
    CHECK(atexit(at_exit) == 0);
    fprintf(stderr, "TIMELINE,1,BEFORE_EXIT,job,\n");
    exit(9);
}

static int rounds;
static void *die_work(void *which) {
    for (;;) {
        pthread_mutex_lock(&gpu_mutex);
        nap_us(300);
        __atomic_add_fetch(&rounds, 1, __ATOMIC_RELAXED);
        pthread_mutex_unlock(&gpu_mutex);
    }
    return which;
}
static void busy_threads(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) CHECK(pthread_create(&threads[i], NULL, die_work, NULL) == 0);
    while (__atomic_load_n(&rounds, __ATOMIC_RELAXED) < 50) nap_us(1000);
}
static int dies(int how) {
    busy_threads();
    fprintf(stderr, "TIMELINE,1,DYING,job,\n");
    if (how == 0) _exit(11);
    if (how == 1) exit(12);
    if (how == 2) abort();
    if (how == 3) raise(SIGKILL);
    return 13;
}

/* Opened at run time, through the C ABI, and closed again. */
static int opened(void) {
    const char *path = getenv("LIBRARY");
    CHECK(path != NULL);
    for (int i = 0; i < 3; i++) {
        void *library = dlopen(path, RTLD_NOW);
        CHECK(library != NULL);
        int32_t (*start)(void) = (int32_t(*)(void))dlsym(library, "nvtx_markers_abi_start");
        void (*push)(uint32_t, uint64_t) = (void (*)(uint32_t, uint64_t))dlsym(library, "nvtx_markers_abi_push");
        void (*pop)(void) = (void (*)(void))dlsym(library, "nvtx_markers_abi_pop");
        uint64_t (*section)(const char *, size_t, int64_t, int64_t) =
            (uint64_t(*)(const char *, size_t, int64_t, int64_t))dlsym(library, "nvtx_markers_abi_section_start");
        uint64_t (*held)(uint32_t, uint64_t) = (uint64_t(*)(uint32_t, uint64_t))dlsym(library, "nvtx_markers_abi_range_start");
        void (*end)(uint64_t) = (void (*)(uint64_t))dlsym(library, "nvtx_markers_abi_range_end");
        void (*timeline)(const char *, size_t) = (void (*)(const char *, size_t))dlsym(library, "nvtx_markers_abi_timeline");
        CHECK(start != NULL && push != NULL && pop != NULL && section != NULL && held != NULL && end != NULL && timeline != NULL);
        printf("listening %d\n", start());
        push(11, 0);
        pop();
        push(999, 0); /* no such category: nothing */
        const uint64_t open_section = section("job [7 7]", 9, i, -1);
        const uint64_t hold = held(2, 4711);
        end(open_section);
        end(hold);
        end(0);
        timeline("TIMELINE,5,ABI,job,", 19);
        timeline("nothing", 7);
        CHECK(dlclose(library) == 0);
    }
    contend();
    return 0;
}

/* ---- stand-ins for the driver and the runtime ---- */

extern int cuda_like_read(pthread_rwlock_t *lock, long us) __attribute__((weak));
extern int cuda_like_write(pthread_rwlock_t *lock, long us) __attribute__((weak));
static pthread_rwlock_t driver_lock = PTHREAD_RWLOCK_INITIALIZER;
static void *driver_work(void *which) {
    pthread_barrier_wait(&together);
    for (int i = 0; i < 3; i++) CHECK((which == NULL ? cuda_like_read : cuda_like_write)(&driver_lock, 2000) == 0);
    return NULL;
}
static pthread_rwlock_t own_lock = PTHREAD_RWLOCK_INITIALIZER;
static void *own_work(void *which) {
    pthread_barrier_wait(&together);
    for (int i = 0; i < 3; i++) {
        CHECK((which == NULL ? pthread_rwlock_rdlock : pthread_rwlock_wrlock)(&own_lock) == 0);
        nap_us(2000);
        CHECK(pthread_rwlock_unlock(&own_lock) == 0);
    }
    return NULL;
}
static int driver(void) {
    two(driver_work);
    two(own_work); /* the program's own: not the driver's */
    return 0;
}

extern int cudaMalloc(void **pointer, size_t size) __attribute__((weak));
extern int cudaFree(void *pointer) __attribute__((weak));
extern int cudaDeviceSynchronize(void) __attribute__((weak));
extern int cudaMemcpy2DAsync(void *, size_t, const void *, size_t, size_t, size_t, int, void *) __attribute__((weak));
struct dim3 {
    unsigned x, y, z;
};
extern int cudaLaunchKernel(const void *, struct dim3, struct dim3, void **, size_t, void *) __attribute__((weak));
static int cuda(void) {
    void *pointer = NULL;
    const struct dim3 grid = {1, 2, 3}, block = {4, 5, 6};
    CHECK(cudaMalloc(&pointer, 64) == 0 && pointer != NULL);
    CHECK(cudaDeviceSynchronize() == 0);
    CHECK(cudaMemcpy2DAsync(pointer, 1, pointer, 2, 3, 4, 5, (void *)6) == 21);
    CHECK(cudaLaunchKernel(pointer, grid, block, NULL, 7, (void *)8) == 36);
    CHECK(cudaFree(pointer) == 0);
    return 0;
}

int main(int count, char **values) {
    const char *name = count > 1 ? values[1] : "";
    if (count > 2) hammer_count = atol(values[2]);
    if (strcmp(name, "contend") == 0) return contend();
    if (strcmp(name, "brief") == 0) return brief();
    if (strcmp(name, "kinds") == 0) return kinds();
    if (strcmp(name, "robust") == 0) return robust();
    if (strcmp(name, "conditions") == 0) return conditions();
    if (strcmp(name, "crossing") == 0) return crossing();
    if (strcmp(name, "hammer") == 0) return hammer();
    if (strcmp(name, "lines") == 0) return lines();
    if (strcmp(name, "short-writes") == 0) return short_writes();
    if (strcmp(name, "forks") == 0) return forks();
    if (strcmp(name, "forks-while-locked") == 0) return forks_while_locked();
    if (strcmp(name, "execs") == 0) return execs(values[0]);
    if (strcmp(name, "after-exec") == 0) return fprintf(stderr, "TIMELINE,1,AFTER_EXEC,job,\n") > 0 ? 8 : 1;
    if (strcmp(name, "signals") == 0) return signals();
    if (strcmp(name, "errno") == 0) return errno_kept();
    if (strcmp(name, "exits") == 0) return exits();
    if (strcmp(name, "dies-_exit") == 0) return dies(0);
    if (strcmp(name, "dies-exit") == 0) return dies(1);
    if (strcmp(name, "dies-abort") == 0) return dies(2);
    if (strcmp(name, "dies-kill") == 0) return dies(3);
    if (strcmp(name, "dies-return") == 0) return dies(4);
    if (strcmp(name, "opened") == 0) return opened();
    if (strcmp(name, "driver") == 0) return driver();
    if (strcmp(name, "cuda") == 0) return cuda();
    fprintf(stderr, "no scenario %s\n", name);
    return 2;
}
