#include "history/who_impl.h"

#include <ctype.h>

#include "base/mem.h"
#include "engine/db.h"
#include "engine/engine.h"
#include "history/touch.h"

bool history_who_new(struct history_who **ret, const struct history_who_opts *opts,
                     struct rd_err *err)
{
    struct history_who *who = rd_calloc(1, sizeof *who);
    if (who == NULL)
        return rd_err_nomem(err, sizeof *who);
    who->opts = *opts;
    *ret = who;
    return true;
}

void history_who_free(struct history_who *who)
{
    if (who == NULL)
        return;
    history_names_done(&who->clients);
    rd_buf_done(&who->commands);
    rd_buf_done(&who->hashes);
    rd_buf_done(&who->lines);
    rd_buf_done(&who->postings);
    rd_buf_done(&who->waiting);
    rd_buf_done(&who->pieces);
    rd_buf_done(&who->late);
    history_monitor_line_done(&who->line);
    rd_free(who);
}

static bool add(struct rd_buf *buf, const void *item, size_t size, struct rd_err *err)
{
    return rd_buf_add(buf, item, size) || rd_err_nomem(err, buf->len + size);
}

/* ---- hashes ---- */

static void begin_hash(const struct history_who *who, struct rd_siphash *hash, uint64_t kind,
                       uint64_t db)
{
    rd_siphash_begin(hash, who->opts.salt);
    rd_siphash_add_u64(hash, kind);
    rd_siphash_add_u64(hash, db);
}

/* The name of the command in lower case: a client may write it in any. */
static uint64_t hash_line(const struct history_who *who, uint64_t db, size_t argc,
                          const struct rd_slice *argv)
{
    struct rd_siphash hash;
    begin_hash(who, &hash, 1, db);
    for (size_t i = 0; i < argc; i++) {
        rd_siphash_add_u64(&hash, argv[i].len);
        for (size_t j = 0; i == 0 && j < argv[i].len; j++) {
            uint8_t c = (uint8_t)tolower(argv[i].ptr[j]);
            rd_siphash_add(&hash, &c, 1);
        }
        if (i > 0)
            rd_siphash_add(&hash, argv[i].ptr, argv[i].len);
    }
    return rd_siphash_end(&hash).lo;
}

static uint64_t hash_key(const struct history_who *who, uint64_t db, struct rd_slice key)
{
    struct rd_siphash hash;
    begin_hash(who, &hash, 2, db);
    rd_siphash_add(&hash, key.ptr, key.len);
    return rd_siphash_end(&hash).lo;
}

/* Of a key, and a command of the stream that writes it. */
static uint64_t hash_product(const struct history_who *who, uint64_t key, struct rd_slice name)
{
    struct rd_siphash hash;
    begin_hash(who, &hash, 3, key);
    rd_siphash_add(&hash, name.ptr, name.len);
    return rd_siphash_end(&hash).lo;
}

/* ---- the keys of a line ---- */

struct concerned {
    const struct history_who *who;
    uint64_t db;
    struct rd_buf hashes; /* of the keys that it writes */
    bool ok;
};

static bool note_key(void *ctx, struct rd_slice name)
{
    struct concerned *c = ctx;
    if (!history_names_has(c->who->opts.names, name))
        return true;
    uint64_t hash = hash_key(c->who, c->db, name);
    c->ok = rd_buf_add(&c->hashes, &hash, sizeof hash);
    return c->ok;
}

/* False: the line does not concern the keys. */
static bool is_concerned(struct concerned *c, const struct rebuild_line *line)
{
    enum history_touch touch = history_touch_of(line, note_key, c);
    if (touch == HISTORY_TOUCHES_NOTHING || history_is_script(line))
        return false;
    if (line->command == NULL) /* any argument may be a key */
        for (size_t i = 1; c->ok && i < line->argc; i++)
            note_key(c, line->argv[i]);
    return touch == HISTORY_TOUCHES_ANY || c->hashes.len > 0;
}

/* ---- commands of the stream ---- */

static bool is_full(const struct history_who *who, struct rd_err *err)
{
    if (who->commands.len / sizeof(struct who_command) < HISTORY_WHO_MAX &&
        who->lines.len / sizeof(struct who_line) < HISTORY_WHO_MAX)
        return false;
    rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET,
               "more than %d commands concern the keys: too many to be joined with clients",
               HISTORY_WHO_MAX);
    return true;
}

/* The server writes the DEL of a key when its time has come, and a DEL of a client in that moment
 * is not needed any more. */
static bool is_expiring(const struct history_visit *visit)
{
    struct rebuild_line_keys keys;
    const struct rebuild_line *line = visit->line;
    bool found = false;
    if (visit->time_us == INT64_MIN || line->command == NULL ||
        (!rebuild_line_is(line, "del") && !rebuild_line_is(line, "unlink")))
        return false;
    rebuild_line_find_keys(line, &keys);
    for (size_t i = 0; i < keys.n; i++) {
        const struct engine_entry *entry = engine_db_find(engine_db(visit->data->engine, visit->db),
                                                          line->argv[keys.list[i].index]);
        found |= entry != NULL && entry->expire_ms != ENGINE_NO_EXPIRE &&
                 entry->expire_ms <= (visit->time_us + HISTORY_WHO_WINDOW_US) / 1000;
    }
    rebuild_line_keys_done(&keys);
    return found;
}

static bool add_products(struct history_who *who, struct who_command *command, uint64_t key,
                         struct rd_err *err)
{
    const char *const names[] = {command->product.name, HISTORY_ANYTHING};
    for (size_t i = 0; i < 2; i++) {
        uint64_t hash = hash_product(who, key, rd_slice_str(names[i]));
        if (!add(&who->hashes, &hash, sizeof hash, err))
            return false;
        command->n_hashes++;
    }
    return true;
}

static bool add_command(struct history_who *who, const struct history_visit *visit,
                        const struct rd_buf *keys, struct rd_err *err)
{
    const struct rebuild_line *line = visit->line;
    const uint64_t *list = (const uint64_t *)(const void *)keys->ptr;
    uint64_t hash = hash_line(who, visit->db, line->argc, line->argv);
    struct who_command command = {.place = visit->place,
                                  .time_us = visit->time_us,
                                  .hashes = who->hashes.len / sizeof hash,
                                  .n_hashes = 1,
                                  .product = history_product_of(line),
                                  .expiring = who->expiring};
    if (!add(&who->hashes, &hash, sizeof hash, err))
        return false;
    for (size_t i = 0; i < keys->len / sizeof hash; i++)
        if (!add_products(who, &command, list[i], err))
            return false;
    return add(&who->commands, &command, sizeof command, err);
}

bool history_who_visit(struct history_who *who, const struct history_visit *visit,
                       struct rd_err *err)
{
    struct concerned c = {.who = who, .db = visit->db, .ok = true};
    if (visit->line == NULL)
        return true;
    if (visit->moment == HISTORY_BEFORE) {
        who->expiring = is_expiring(visit);
        return true;
    }
    bool ok = true;
    if (is_concerned(&c, visit->line) && c.ok)
        ok = !is_full(who, err) && add_command(who, visit, &c.hashes, err);
    if (!c.ok)
        ok = rd_err_nomem(err, c.hashes.len);
    rd_buf_done(&c.hashes);
    return ok;
}

void history_who_restart(struct history_who *who)
{
    rd_buf_reset(&who->commands);
    rd_buf_reset(&who->hashes);
}

/* ---- lines of MONITOR ---- */

static bool number_of(struct history_who *who, struct rd_slice client, uint32_t *ret,
                      struct rd_err *err)
{
    if (!history_names_add(&who->clients, client, NULL, err))
        return false;
    *ret = (uint32_t)history_names_find(&who->clients, client) + 1;
    return true;
}

/* A client that waited sends another command: it does not wait any more. All clients of a socket
 * have the same address. */
static void end_waiting(struct history_who *who, struct rd_slice client, int64_t time_us)
{
    struct who_waiting *waiting = (struct who_waiting *)(void *)who->waiting.ptr;
    size_t n = who->waiting.len / sizeof *waiting;
    if (who->n_waiting == 0 || (client.len > 5 && memcmp(client.ptr, "unix:", 5) == 0))
        return;
    for (size_t i = 0; i < n; i++)
        if (!waiting[i].over && waiting[i].client != WHO_NOBODY &&
            rd_slice_eq(who->clients.list[waiting[i].client - 1], client)) {
            waiting[i].over = true;
            waiting[i].until_us = time_us;
            who->n_waiting--;
        }
}

static bool add_waiting(struct history_who *who, const struct who_waiting *waiting,
                        struct rd_err *err)
{
    who->n_waiting++;
    return add(&who->waiting, waiting, sizeof *waiting, err);
}

static bool add_posting(struct history_who *who, uint64_t hash, bool names, struct rd_err *err)
{
    const struct who_posting posting = {hash, (uint32_t)(who->lines.len / sizeof(struct who_line)),
                                        names};
    return add(&who->postings, &posting, sizeof posting, err);
}

/* A line that can be behind other commands than itself. */
static bool add_products_of(struct history_who *who, const struct rebuild_line *line, uint64_t key,
                            uint32_t client, int64_t time_us, struct rd_err *err)
{
    bool waits = history_is_blocking(line) && !who->line.in_script;
    const char *at = history_products(line) + 1;
    for (const char *end; (end = strchr(at, ' ')) != NULL; at = end + 1) {
        uint64_t hash = hash_product(who, key, rd_slice(at, (size_t)(end - at)));
        const struct who_waiting waiting = {hash, time_us, INT64_MAX, client, false, false};
        if (!add_posting(who, hash, history_makes_removal(line), err) ||
            (waits && !add_waiting(who, &waiting, err)))
            return false;
    }
    return true;
}

static bool add_line(struct history_who *who, const struct rebuild_line *line,
                     const struct rd_buf *keys, uint32_t client, int64_t time_us,
                     struct rd_err *err)
{
    const struct who_line item = {time_us, client, history_is_once(line)};
    const uint64_t *list = (const uint64_t *)(const void *)keys->ptr;
    bool ok = add_posting(who, hash_line(who, who->line.db, line->argc, line->argv), true, err);
    for (size_t i = 0; ok && !history_is_plain(line) && i < keys->len / sizeof *list; i++)
        ok = add_products_of(who, line, list[i], client, time_us, err);
    return ok && add(&who->lines, &item, sizeof item, err);
}

static bool take_line(struct history_who *who, int64_t time_us, struct rd_err *err)
{
    const struct rebuild_line line = {engine_command_resolve(who->line.argv, who->line.argc),
                                      who->line.argc, who->line.argv};
    struct concerned c = {.who = who, .db = who->line.db, .ok = true};
    uint32_t client = who->script;
    if (!who->line.in_script)
        who->script = WHO_NOBODY;
    if (!who->line.in_script && history_is_script(&line) &&
        !number_of(who, who->line.client, &who->script, err))
        return false;
    bool ok = true;
    if (is_concerned(&c, &line) && c.ok)
        ok = !is_full(who, err) &&
             (who->line.in_script || number_of(who, who->line.client, &client, err)) &&
             add_line(who, &line, &c.hashes, client, time_us, err);
    if (!c.ok)
        ok = rd_err_nomem(err, c.hashes.len);
    rd_buf_done(&c.hashes);
    return ok;
}

bool history_who_line(struct history_who *who, struct rd_slice text, int64_t time_us,
                      int64_t *ret_time_us, struct rd_err *err)
{
    enum history_line status = history_monitor_line_parse(&who->line, text);
    if (status == HISTORY_LINE_NO_MEMORY)
        return rd_err_nomem(err, text.len);
    if (status == HISTORY_LINE_COMMAND && time_us == INT64_MIN)
        time_us = who->line.time_us;
    if (ret_time_us != NULL)
        *ret_time_us = status == HISTORY_LINE_COMMAND ? time_us : INT64_MIN;
    if (status != HISTORY_LINE_COMMAND)
        return true;
    if (!who->line.in_script)
        end_waiting(who, who->line.client, time_us);
    return take_line(who, time_us, err);
}

bool history_who_covered(struct history_who *who, int64_t from_us, int64_t until_us,
                         struct rd_err *err)
{
    const struct who_piece piece = {from_us, until_us};
    return add(&who->pieces, &piece, sizeof piece, err);
}

bool history_who_late(struct history_who *who, int64_t from_us, int64_t until_us,
                      struct rd_err *err)
{
    const struct who_piece piece = {from_us, until_us};
    return add(&who->late, &piece, sizeof piece, err);
}

bool history_who_begin(struct history_who *who, int64_t time_us, bool waiting_known,
                       struct rd_err *err)
{
    const struct who_waiting any = {0, time_us, INT64_MAX, WHO_NOBODY, true, false};
    struct who_waiting *waiting = (struct who_waiting *)(void *)who->waiting.ptr;
    who->script = WHO_NOBODY;
    for (size_t i = 0; waiting_known && i < who->waiting.len / sizeof *waiting; i++)
        if (!waiting[i].over) {
            waiting[i].over = true;
            waiting[i].until_us = time_us;
        }
    if (!waiting_known)
        return add_waiting(who, &any, err);
    who->n_waiting = 0;
    return true;
}

bool history_who_waits(struct history_who *who, struct rd_slice client, int64_t time_us,
                       struct rd_err *err)
{
    struct who_waiting waiting = {.from_us = time_us, .until_us = INT64_MAX, .any = true};
    return number_of(who, client, &waiting.client, err) && add_waiting(who, &waiting, err);
}
