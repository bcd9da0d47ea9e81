#include "engine/value/hll.h"

#include "engine/call.h"
#include "engine/cmd/cmd.h"

#include <stdio.h>

static void reply_corrupt(struct engine_call *call)
{
    engine_reply_by_data(call->reply);
    engine_reply_error(call->reply, "INVALIDOBJ Corrupted HLL object detected");
}

/* entry may be NULL. If the value is not a HyperLogLog, replies with the error and returns false.
 */
static bool hll_ok(struct engine_call *call, const struct engine_entry *entry)
{
    if (!engine_call_type_ok(call, entry, ENGINE_STRING))
        return false;
    if (entry == NULL || engine_hll_is(&entry->value))
        return true;
    engine_reply_by_data(call->reply);
    engine_reply_error(call->reply, "WRONGTYPE Key is not a valid HyperLogLog string value.");
    return false;
}

/* As in servers, the value is RAW from now on, even if it does not change. */
static struct engine_value *make_raw(struct engine_entry *entry)
{
    engine_string_room(&entry->value, entry->value.len);
    return &entry->value;
}

static struct engine_value *add_empty(struct engine_call *call, struct rd_slice key)
{
    struct engine_value v = engine_hll_new();
    return &engine_call_add(call, key, &v)->value;
}

/* The bytes of a sparse value that several elements are added to; NULL for others. One of the
 * elements may show that the value is corrupt. */
static uint8_t *copy_sparse(const struct engine_call *call, const struct engine_value *v)
{
    enum { ONE_ELEMENT = 3 };
    if (call->argc <= ONE_ELEMENT || engine_hll_is_dense(v))
        return NULL;
    uint8_t *copy = engine_scratch_alloc(v->len);
    memcpy(copy, v->u.bytes, v->len);
    return copy;
}

/* A command that fails is not written to the log, so it must not change the value either. Servers
 * keep the elements before the one that failed, and lose them with the next start. */
static void put_back(struct engine_value *v, uint8_t *before, uint32_t len)
{
    if (before != NULL) {
        memcpy(engine_string_room(v, len), before, len);
        v->len = len;
    }
    engine_scratch_free(before);
}

void engine_cmd_pfadd(struct engine_call *call)
{
    struct rd_slice key = call->argv[1];
    struct engine_entry *entry = engine_call_find_write(call, key);
    if (!hll_ok(call, entry))
        return;
    uint64_t changes = entry == NULL;
    struct engine_value *v = entry == NULL ? add_empty(call, key) : make_raw(entry);
    uint8_t *before = copy_sparse(call, v);
    uint32_t len = v->len;
    enum engine_hll_status status = ENGINE_HLL_SAME;
    for (size_t i = 2; i < call->argc && status != ENGINE_HLL_CORRUPT; i++) {
        status = engine_hll_add(v, call->argv[i], call->config->hll_sparse_max_bytes);
        changes += status == ENGINE_HLL_CHANGED;
    }
    if (status == ENGINE_HLL_CORRUPT) {
        put_back(v, before, len);
        reply_corrupt(call);
        return;
    }
    engine_scratch_free(before);
    if (changes > 0) {
        engine_hll_make_stale(v);
        engine_changed(call, ENGINE_NOTIFY_STRING, "pfadd", key, changes);
    }
    engine_reply_int(call->reply, changes > 0);
}

/* ---- several keys ---- */

/* The maximum of each register over the keys from argv[1] on. *ret_dense: one of them is dense. */
static bool gather(struct engine_call *call, uint8_t registers[ENGINE_HLL_REGISTERS],
                   bool *ret_dense)
{
    *ret_dense = false;
    for (size_t i = 1; i < call->argc; i++) {
        const struct engine_entry *entry = engine_call_find_read(call, call->argv[i]);
        if (!hll_ok(call, entry))
            return false;
        if (entry == NULL)
            continue;
        *ret_dense |= engine_hll_is_dense(&entry->value);
        if (!engine_hll_gather(&entry->value, registers)) {
            reply_corrupt(call);
            return false;
        }
    }
    return true;
}

static void count_one(struct engine_call *call)
{
    struct engine_entry *entry = engine_call_find_read(call, call->argv[1]);
    uint64_t count = 0;
    if (!hll_ok(call, entry))
        return;
    if (entry != NULL) {
        struct engine_value *v = make_raw(entry);
        if (!engine_hll_cached(v, &count)) {
            if (!engine_hll_count(v, &count)) {
                reply_corrupt(call);
                return;
            }
            engine_hll_cache(v, count);
            engine_touch(call, call->argv[1], 1);
        }
    }
    engine_reply_int(call->reply, (int64_t)count);
}

void engine_cmd_pfcount(struct engine_call *call)
{
    uint8_t registers[ENGINE_HLL_REGISTERS] = {0};
    bool any_dense;
    if (call->argc == 2)
        count_one(call);
    else if (gather(call, registers, &any_dense))
        engine_reply_int(call->reply, (int64_t)engine_hll_count_registers(registers));
}

void engine_cmd_pfmerge(struct engine_call *call)
{
    struct rd_slice key = call->argv[1];
    uint8_t registers[ENGINE_HLL_REGISTERS] = {0};
    bool any_dense;
    if (!gather(call, registers, &any_dense))
        return;
    struct engine_entry *entry = engine_call_find_write(call, key);
    struct engine_value *v = entry == NULL ? add_empty(call, key) : make_raw(entry);
    if (any_dense && !engine_hll_to_dense(v)) {
        reply_corrupt(call);
        return;
    }
    for (unsigned i = 0; i < ENGINE_HLL_REGISTERS; i++)
        if (registers[i] > 0)
            engine_hll_raise(v, i, registers[i], call->config->hll_sparse_max_bytes);
    engine_hll_make_stale(v);
    engine_changed(call, ENGINE_NOTIFY_STRING, "pfadd", key, 1);
    engine_reply_ok(call->reply);
}

/* ---- PFDEBUG ---- */

/* The change is an effect, but servers do not count it as a change of the key. */
static bool debug_to_dense(struct engine_call *call, struct engine_value *v, bool *ret_changed)
{
    *ret_changed = !engine_hll_is_dense(v);
    if (!engine_hll_to_dense(v)) {
        reply_corrupt(call);
        return false;
    }
    call->dirty += *ret_changed;
    return true;
}

static void debug_registers(struct engine_call *call, struct engine_value *v)
{
    uint8_t registers[ENGINE_HLL_REGISTERS] = {0};
    bool changed;
    if (!debug_to_dense(call, v, &changed))
        return;
    engine_hll_gather(v, registers);
    engine_reply_array(call->reply, ENGINE_HLL_REGISTERS);
    for (size_t i = 0; i < ENGINE_HLL_REGISTERS; i++)
        engine_reply_int(call->reply, registers[i]);
}

static void debug_decode(struct engine_call *call, const struct engine_value *v)
{
    enum { RUN_TEXT = 16 };
    struct engine_hll_run run;
    size_t at = 0, len = 0;
    if (engine_hll_is_dense(v)) {
        engine_reply_error(call->reply, "ERR HLL encoding is not sparse");
        return;
    }
    char *text = engine_scratch_alloc((size_t)v->len * RUN_TEXT);
    while (engine_hll_next_run(v, &at, &run)) {
        if (run.value > 0)
            len += (size_t)snprintf(text + len, RUN_TEXT, "v:%u,%u ", run.value, run.len);
        else
            len +=
                (size_t)snprintf(text + len, RUN_TEXT, "%c:%u ", run.is_long ? 'Z' : 'z', run.len);
    }
    engine_reply_bulk(call->reply, rd_slice(text, len > 0 ? len - 1 : 0));
    engine_scratch_free(text);
}

void engine_cmd_pfdebug(struct engine_call *call)
{
    struct rd_slice what = call->argv[1];
    struct engine_entry *entry = engine_call_find_write(call, call->argv[2]);
    bool changed;
    if (!hll_ok(call, entry))
        return;
    if (entry == NULL) {
        engine_reply_by_data(call->reply);
        engine_reply_error(call->reply, "ERR The specified key does not exist");
        return;
    }
    struct engine_value *v = make_raw(entry);
    if (engine_arg_is(what, "GETREG"))
        debug_registers(call, v);
    else if (engine_arg_is(what, "DECODE"))
        debug_decode(call, v);
    else if (engine_arg_is(what, "ENCODING"))
        engine_reply_simple(call->reply, engine_hll_is_dense(v) ? "dense" : "sparse");
    else if (!engine_arg_is(what, "TODENSE"))
        engine_reply_errorf(call->reply, "ERR Unknown PFDEBUG subcommand '%.*s'",
                            (int)(what.len < 512 ? what.len : 512), (const char *)what.ptr);
    else if (debug_to_dense(call, v, &changed))
        engine_reply_int(call->reply, changed);
}

/* ---- PFSELFTEST ---- */

/* Adds the same elements to a sparse and a dense HyperLogLog: both must give the same count, close
 * to the true one. Returns a description of the fault, or NULL. */
static const char *compare_counts(uint64_t n, size_t sparse_max)
{
    struct engine_value sparse = engine_hll_new(), dense = engine_hll_new();
    uint64_t n_sparse = 0, n_dense = 0;
    bool ok = engine_hll_to_dense(&dense);
    for (uint64_t i = 0; i < n; i++) {
        struct rd_slice element = rd_slice(&i, sizeof i);
        ok &= engine_hll_add(&sparse, element, sparse_max) ==
              engine_hll_add(&dense, element, sparse_max);
    }
    ok &= engine_hll_count(&sparse, &n_sparse) && engine_hll_count(&dense, &n_dense);
    bool is_dense = engine_hll_is_dense(&sparse);
    engine_value_free(&sparse);
    engine_value_free(&dense);
    if (is_dense && n < sparse_max / 2)
        return "sparse encoding not used";
    if (!ok || n_sparse != n_dense)
        return "dense/sparse disagree";
    return n_dense < n - n / 20 || n_dense > n + n / 20 ? "too large an error" : NULL;
}

void engine_cmd_pfselftest(struct engine_call *call)
{
    for (uint64_t n = 1; n <= 10000; n *= 10) {
        const char *wrong = compare_counts(n, call->config->hll_sparse_max_bytes);
        if (wrong != NULL) {
            engine_reply_errorf(call->reply, "ERR TESTFAILED %s", wrong);
            return;
        }
    }
    engine_reply_ok(call->reply);
}
