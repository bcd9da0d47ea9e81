/* Checking a snapshot that arrived in a file, before it replaces anything.
 *
 * The thread has a source of its own and outlives the link if that is dropped meanwhile.
 */
#include <inttypes.h>
#include <sys/random.h>

#include "base/mem.h"
#include "rdb/check.h"
#include "server/loop/background.h"
#include "server/loop/log.h"
#include "server/durable/replication/receive_impl.h"

struct receive_check {
    struct receive *receive; /* NULL: the result is not wanted */
    struct rd_src *src;
    struct rdb_check_opts opts;
    struct rdb_check_result res;
    struct rd_err err;
    bool checked; /* res is valid, otherwise err */
    bool ended;
};

static void check_free(struct receive_check *check)
{
    rd_src_close(check->src);
    rd_free(check);
}

static void work(void *arg)
{
    struct receive_check *check = arg;
    check->checked = rdb_check(check->src, &check->opts, &check->res, &check->err);
}

static void done(void *arg)
{
    struct receive_check *check = arg;
    check->ended = true;
    if (check->receive == NULL)
        check_free(check);
    else
        receive_load_wake(check->receive);
}

/* Without random numbers, duplicate keys are found, too, but a master could make that slow. */
static struct rdb_check_opts check_opts(void)
{
    struct rdb_check_opts opts = RDB_CHECK_OPTS();
    if (getrandom(opts.seed, sizeof opts.seed, GRND_NONBLOCK) != sizeof opts.seed)
        opts.seed[0] = opts.seed[1] = 0;
    return opts;
}

bool receive_check_begin(struct receive *r)
{
    struct rd_err err = {0};
    struct receive_check *check = rd_calloc(1, sizeof *check);
    if (check == NULL)
        replication_no_memory();
    check->receive = r;
    check->opts = check_opts();
    check->res = RDB_CHECK_RESULT();
    if (!rd_src_open_file(&check->src, r->temp, &RD_SRC_OPTS(.window = RECEIVE_WINDOW), &err)) {
        log_warning("Failed trying to load the MASTER synchronization DB from disk: %s", err.text);
        rd_free(check);
        return false;
    }
    r->check = check;
    background_run(r->durable->loop, BACKGROUND_CHECK, work, done, check);
    return true;
}

bool receive_check_runs(const struct receive *r)
{
    return r->check != NULL && !r->check->ended;
}

static bool is_sound(const struct receive_check *check)
{
    const struct rdb_check_result *res = &check->res;
    if (check->checked && !res->damaged && res->sum != RDB_SUM_BAD)
        return true;
    const char *kept = "The data set and its file stay as they are.";
    if (!check->checked || res->damaged)
        log_warning("Failed trying to load the MASTER synchronization DB from disk: %s. %s",
                    check->checked ? res->err.text : check->err.text, kept);
    else
        log_warning("Failed trying to load the MASTER synchronization DB from disk: wrong checksum "
                    "(%016" PRIx64 ", computed %016" PRIx64 "). %s",
                    res->stored, res->computed, kept);
    return false;
}

bool receive_check_end(struct receive *r)
{
    struct rd_err err = {0};
    bool sound = is_sound(r->check);
    if (!sound)
        receive_failed(r, r->check->checked ? &r->check->res.err : &r->check->err);
    receive_check_stop(r);
    if (!sound)
        return false;
    if (rd_src_open_file(&r->src, r->temp, &RD_SRC_OPTS(.window = RECEIVE_WINDOW), &err))
        return true;
    log_warning("Failed trying to load the MASTER synchronization DB from disk: %s", err.text);
    return false;
}

void receive_check_stop(struct receive *r)
{
    struct receive_check *check = r->check;
    if (check == NULL)
        return;
    r->check = NULL;
    check->receive = NULL;
    if (check->ended)
        check_free(check);
}
