/* A pool of threads for the parallel loops of Taichi's CPU kernels.

   Taichi's own pool wakes its threads through a condition variable, and the calling thread sleeps until they are done,
   which takes 50 us per loop. The threads of this pool spin for a while before they sleep, as OpenMP's do, and the
   calling thread takes part in the loop. `make bitcode` compiles this file; see thread_pool.py. */

typedef struct RuntimeContext RuntimeContext;
typedef struct LLVMRuntime LLVMRuntime;
typedef void Task(void *context, int thread, int item);

/* The memory of a pool, which Python allocates with zeros, but for the number of threads and how long they spin.

   A loop is open while `round` is odd. A thread that takes part first counts itself in `active` and then checks that
   the loop is still open; the calling thread closes the loop and then waits until no thread is active. */
typedef struct {
    _Atomic int round;
    int item_count, thread_limit;
    void *context;
    Task *task;
    _Alignas(64) _Atomic int next_item;
    _Alignas(64) _Atomic int active;
    _Alignas(64) _Atomic int asleep;
    _Alignas(64) _Atomic int awake; /* threads that execute code of the pool */
    _Atomic int is_busy, is_stopped;
    int thread_count, spin_ticks;
    _Atomic int started;
    void *run; /* `run_loop` */
    int free_core; /* the core without a thread of the pool, for the calling thread */
    struct {
        _Atomic int id, core;
    } threads[];
} Pool;

enum { FUTEX_WAIT_PRIVATE = 128, FUTEX_WAKE_PRIVATE = 129 };
enum { SYS_sched_yield = 24, SYS_gettid = 186, SYS_futex = 202, SYS_sched_setaffinity = 203 };
enum { MAX_CORES = 1024 };

long syscall(long, ...);
int sched_getcpu(void);
int pthread_create(unsigned long *, const void *, void *(*)(void *), void *);
LLVMRuntime *RuntimeContext_get_runtime(RuntimeContext *);
void LLVMRuntime_initialize_thread_pool(LLVMRuntime *, void *, void *);

static void pause_for(int rounds) {
    __builtin_ia32_pause();
    if (rounds % 1024 == 0) syscall(SYS_sched_yield);
}

static void pin(int id, int core) {
    unsigned long mask[MAX_CORES / 64] = {0};
    mask[core / 64] = 1ul << core % 64;
    syscall(SYS_sched_setaffinity, id, sizeof mask, mask);
}

/* Move the thread on the core of the calling thread, if any, to the free core. Linux often wakes a thread on the core
   of the thread that wakes it. */
static void make_room(Pool *pool) {
    int core = sched_getcpu();
    if (core == pool->free_core) return;
    for (int k = 0; k < pool->thread_count; k++) {
        if (pool->threads[k].core != core) continue;
        pool->threads[k].core = pool->free_core;
        pool->free_core = core;
        if (pool->threads[k].id) pin(pool->threads[k].id, pool->threads[k].core);
        return;
    }
}

static void run_items(Pool *pool, int thread) {
    int count = pool->item_count;
    for (int item = pool->next_item++; item < count; item = pool->next_item++)
        pool->task(pool->context, thread, item);
}

static void *work(void *argument) {
    Pool *pool = argument;
    int thread = ++pool->started, seen = 0;
    pool->threads[thread - 1].id = syscall(SYS_gettid);
    for (int core = -1; core != pool->threads[thread - 1].core;) {
        core = pool->threads[thread - 1].core;
        pin(0, core);
    }
    while (!pool->is_stopped) {
        unsigned long long start = __builtin_ia32_rdtsc();
        int round = pool->round, rounds = 0;
        while (!(round & 1) || round == seen) {
            if (pool->is_stopped) goto stop;
            if (__builtin_ia32_rdtsc() - start > (unsigned)pool->spin_ticks) {
                pool->asleep++;
                pool->awake--;
                syscall(SYS_futex, &pool->round, FUTEX_WAIT_PRIVATE, round, 0L, 0L, 0);
                pool->awake++;
                pool->asleep--;
                start = __builtin_ia32_rdtsc();
            }
            pause_for(++rounds);
            round = pool->round;
        }
        pool->active++;
        if (pool->round == round && thread < pool->thread_limit) run_items(pool, thread);
        pool->active--;
        seen = round;
    }
stop:
    pool->awake--;
    for (;;) syscall(SYS_futex, &pool->is_stopped, FUTEX_WAIT_PRIVATE, 1, 0L, 0L, 0);
}

/* Taichi's interface: run the task for each item, on up to `thread_limit` threads. */
static void run_loop(void *argument, int item_count, int thread_limit, void *context, Task *task) {
    Pool *pool = argument;
    if (item_count < 2 || thread_limit < 2) {
        for (int item = 0; item < item_count; item++) task(context, 0, item);
        return;
    }
    for (int rounds = 1; __atomic_exchange_n((int *)&pool->is_busy, 1, __ATOMIC_SEQ_CST); rounds++) pause_for(rounds);
    pool->item_count = item_count;
    pool->thread_limit = thread_limit;
    pool->context = context;
    pool->task = task;
    pool->next_item = 0;
    make_room(pool);
    pool->round++;
    if (pool->asleep) syscall(SYS_futex, &pool->round, FUTEX_WAKE_PRIVATE, pool->thread_count);
    run_items(pool, 0);
    pool->round++;
    for (int rounds = 1; pool->active; rounds++) pause_for(rounds);
    pool->is_busy = 0;
}

static RuntimeContext *current_context;

/* Replace Taichi's pool in the running program, and start the threads of the pool at *address if it has none. The
   version distinguishes kernels in Taichi's disk cache, whose keys do not depend on this file. */
void thread_pool_install(long *address, int *version) {
    (void)version;
    Pool *pool = (Pool *)*address;
    if (!pool->run) {
        unsigned long thread;
        int created = 0;
        pool->run = run_loop;
        pool->awake = pool->thread_count;
        while (created < pool->thread_count && !pthread_create(&thread, 0, work, pool)) created++;
        pool->awake -= pool->thread_count - created;
        pool->thread_count = created;
    }
    LLVMRuntime_initialize_thread_pool(RuntimeContext_get_runtime(current_context), pool, pool->run);
}

/* Replaces Taichi's function of this name in the kernel that installs the pool, and runs its body once. */
void cpu_parallel_range_for(RuntimeContext *context, int num_threads, int begin, int end, int step, int block_dim,
                            void (*prologue)(RuntimeContext *, char *), void (*body)(RuntimeContext *, const char *, int),
                            void (*epilogue)(RuntimeContext *, char *), unsigned long tls_size) {
    current_context = context;
    body(context, 0, begin);
}
