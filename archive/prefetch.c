#include "archive/prefetch.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/thread.h"

enum { SEARCHED = 1000 };

enum state { WAITING, TAKEN, READY, FAILED, USED };

struct slot {
    enum state state;
    size_t size;         /* TAKEN and READY */
    struct rd_buf bytes; /* READY */
};

struct prefetch {
    struct archive_store store;
    struct archive_store *inner;
    struct slot *slots;
    struct archive_parallel parallel;
    struct archive_prefetch_opts opts;
    pthread_t threads[ARCHIVE_PARALLEL_MAX];
    unsigned n_threads;
    atomic_bool cancel;

    /* Guarded by the mutex. */
    pthread_mutex_t mutex;
    pthread_cond_t arrived, room;
    size_t next;    /* the first that no thread has taken */
    size_t at;      /* the first that was not asked for */
    size_t waiting; /* bytes of those that were taken and not asked for */
};

static struct prefetch *prefetch_of(struct archive_store *store)
{
    return (struct prefetch *)store;
}

/* ---- the threads ---- */

/* The next object for a thread, when there is room for it. False: the work is over. */
static bool take(struct prefetch *p, size_t *ret, char name[ARCHIVE_NAME_MAX])
{
    bool found = false;
    pthread_mutex_lock(&p->mutex);
    while (!p->cancel && !found && p->next < p->opts.n) {
        size_t i = p->next;
        uint64_t size = 0;
        if (p->slots[i].state != WAITING || !p->opts.object(p->opts.ctx, i, name, &size) ||
            size > p->opts.room / 2) {
            p->next++;
        } else if (p->waiting + size > p->opts.room) {
            pthread_cond_wait(&p->room, &p->mutex);
        } else {
            p->slots[i] = (struct slot){.state = TAKEN, .size = (size_t)size};
            p->waiting += (size_t)size;
            p->next++;
            *ret = i;
            found = true;
        }
    }
    pthread_mutex_unlock(&p->mutex);
    return found;
}

/* Frees what was not asked for and will not be: the caller has skipped it. */
static void drop(struct prefetch *p, size_t i)
{
    p->waiting -= p->slots[i].size;
    rd_buf_done(&p->slots[i].bytes);
    p->slots[i].state = USED;
    pthread_cond_broadcast(&p->room);
}

static void put(struct prefetch *p, size_t i, bool ok, struct rd_buf *bytes)
{
    pthread_mutex_lock(&p->mutex);
    p->slots[i].bytes = *bytes;
    p->slots[i].state = ok ? READY : FAILED;
    if (i < p->at || !ok) {
        drop(p, i);
        p->slots[i].state = ok ? USED : FAILED;
    }
    pthread_cond_broadcast(&p->arrived);
    pthread_mutex_unlock(&p->mutex);
}

static bool read_object(struct archive_store *store, const char *name, size_t size,
                        struct rd_buf *ret)
{
    if (store->ops->range != NULL && size > 0)
        return store->ops->range(store, name, 0, size, ret, NULL);
    return archive_store_read(store, name, size, ret, NULL) && ret->len == size;
}

/* A thread whose store fails ends: the wrapped store finds out what is wrong. */
static void *run(void *arg)
{
    struct prefetch *p = arg;
    struct archive_store *store = NULL;
    char name[ARCHIVE_NAME_MAX];
    size_t i;
    bool ok = p->parallel.open(p->parallel.ctx, &store, &p->cancel, NULL);
    while (ok && take(p, &i, name)) {
        struct rd_buf bytes = {0};
        ok = read_object(store, name, p->slots[i].size, &bytes);
        put(p, i, ok, &bytes);
    }
    archive_store_close(store);
    return NULL;
}

/* ---- sources of bytes in memory, which they own ---- */

struct owned {
    struct rd_buf bytes;
    size_t at;
};

static enum rd_src_status owned_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                     struct rd_err *err)
{
    struct owned *o = impl;
    size_t left = o->bytes.len - o->at;
    (void)err;
    *ret_len = cap < left ? cap : left;
    if (*ret_len == 0)
        return RD_SRC_END;
    memcpy(buf, o->bytes.ptr + o->at, *ret_len);
    o->at += *ret_len;
    return RD_SRC_OK;
}

static void owned_close(void *impl)
{
    struct owned *o = impl;
    rd_buf_done(&o->bytes);
    rd_free(o);
}

static bool open_owned(struct rd_src **ret, struct rd_buf *bytes, struct rd_err *err)
{
    static const struct rd_src_ops ops = {.read = owned_read, .close = owned_close};
    struct owned *o = rd_calloc(1, sizeof *o);
    if (o == NULL) {
        rd_buf_done(bytes);
        return rd_err_nomem(err, sizeof *o);
    }
    o->bytes = *bytes;
    const struct rd_src_opts opts = RD_SRC_OPTS(.total = bytes->len, .sized = true);
    if (rd_src_new(ret, &ops, o, &opts, err))
        return true;
    owned_close(o);
    return false;
}

/* ---- the store ---- */

/* The place of a name from p->at on, or the end. It is nearly always the first; objects that are
 * far ahead have not been read. */
static size_t find(const struct prefetch *p, const char *name)
{
    char other[ARCHIVE_NAME_MAX];
    uint64_t size;
    for (size_t i = p->at; i < p->opts.n && i < p->at + SEARCHED; i++) {
        if (p->opts.object(p->opts.ctx, i, other, &size) && strcmp(other, name) == 0)
            return i;
    }
    return p->opts.n;
}

/* Waits until the object has arrived, and takes its bytes. False: the wrapped store has it. */
static bool wait_for(struct prefetch *p, const char *name, struct rd_buf *ret)
{
    pthread_mutex_lock(&p->mutex);
    size_t i = find(p, name);
    bool ok = i < p->opts.n;
    while (ok && p->at < i) {
        if (p->slots[p->at].state == READY)
            drop(p, p->at);
        else if (p->slots[p->at].state == WAITING)
            p->slots[p->at].state = USED;
        p->at++;
    }
    while (ok && p->slots[i].state == TAKEN)
        pthread_cond_wait(&p->arrived, &p->mutex);
    if (ok)
        p->at = i + 1;
    ok = ok && p->slots[i].state == READY;
    if (ok) {
        *ret = p->slots[i].bytes;
        p->slots[i].bytes = (struct rd_buf){0};
        drop(p, i);
    } else if (i < p->opts.n && p->slots[i].state == WAITING) {
        p->slots[i].state = USED;
    }
    pthread_mutex_unlock(&p->mutex);
    return ok;
}

static bool prefetch_get(struct archive_store *store, const char *name, struct rd_src **ret,
                         struct rd_err *err)
{
    struct prefetch *p = prefetch_of(store);
    struct rd_buf bytes = {0};
    if (wait_for(p, name, &bytes))
        return open_owned(ret, &bytes, err);
    return p->inner->ops->get(p->inner, name, ret, err);
}

static bool prefetch_range(struct archive_store *store, const char *name, uint64_t offset,
                           size_t len, struct rd_buf *ret, struct rd_err *err)
{
    struct archive_store *inner = prefetch_of(store)->inner;
    return inner->ops->range(inner, name, offset, len, ret, err);
}

static bool prefetch_stat(struct archive_store *store, const char *name, struct archive_object *ret,
                          struct rd_err *err)
{
    struct archive_store *inner = prefetch_of(store)->inner;
    return inner->ops->stat(inner, name, ret, err);
}

static bool prefetch_list(struct archive_store *store, const char *folder, archive_each_fn *each,
                          void *arg, struct rd_err *err)
{
    struct archive_store *inner = prefetch_of(store)->inner;
    return inner->ops->list(inner, folder, each, arg, err);
}

static void prefetch_free(struct prefetch *p)
{
    pthread_mutex_destroy(&p->mutex);
    pthread_cond_destroy(&p->arrived);
    pthread_cond_destroy(&p->room);
    for (size_t i = 0; i < p->opts.n; i++)
        rd_buf_done(&p->slots[i].bytes);
    rd_free(p->slots);
    rd_free(p);
}

static void prefetch_close(struct archive_store *store)
{
    struct prefetch *p = prefetch_of(store);
    pthread_mutex_lock(&p->mutex);
    p->cancel = true;
    pthread_cond_broadcast(&p->room);
    pthread_mutex_unlock(&p->mutex);
    for (unsigned i = 0; i < p->n_threads; i++)
        pthread_join(p->threads[i], NULL);
    prefetch_free(p);
}

/* The calling thread is one of them: it reads what has not arrived. */
static void start(struct prefetch *p)
{
    unsigned wanted = p->parallel.n > 0 ? p->parallel.n - 1 : 0;
    wanted = wanted < ARCHIVE_PARALLEL_MAX ? wanted : ARCHIVE_PARALLEL_MAX;
    if (wanted > p->opts.n)
        wanted = (unsigned)p->opts.n;
    while (p->n_threads < wanted && rd_thread_start(&p->threads[p->n_threads], run, p))
        p->n_threads++;
}

bool archive_prefetch_open(struct archive_store **ret, struct archive_store *store,
                           const struct archive_prefetch_opts *opts, struct rd_err *err)
{
    static const struct archive_store_ops ops = {.remote = true,
                                                 .get = prefetch_get,
                                                 .stat = prefetch_stat,
                                                 .list = prefetch_list,
                                                 .close = prefetch_close};
    static const struct archive_store_ops with_ranges = {.remote = true,
                                                         .get = prefetch_get,
                                                         .range = prefetch_range,
                                                         .stat = prefetch_stat,
                                                         .list = prefetch_list,
                                                         .close = prefetch_close};
    struct prefetch *p = rd_calloc(1, sizeof *p);
    if (p == NULL)
        return rd_err_nomem(err, sizeof *p);
    p->slots = rd_calloc(opts->n + 1, sizeof *p->slots);
    if (p->slots == NULL) {
        rd_free(p);
        return rd_err_nomem(err, (opts->n + 1) * sizeof *p->slots);
    }
    p->store.ops = store->ops->range != NULL ? &with_ranges : &ops;
    memcpy(p->store.origin, store->origin, sizeof p->store.origin);
    p->inner = store;
    p->parallel = *opts->parallel;
    p->opts = *opts;
    p->opts.room = opts->room != 0 ? opts->room : ARCHIVE_PREFETCH_ROOM;
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->arrived, NULL);
    pthread_cond_init(&p->room, NULL);
    start(p);
    *ret = &p->store;
    return true;
}
