#include "engine/cmd/sample.h"

enum { BULK_MIN = 8 /* bytes of a bulk string with one or two bytes */ };

bool engine_sample_count(struct engine_call *call, struct rd_slice arg, int64_t *ret)
{
    int64_t count;
    if (!engine_arg_i64(call, arg, &count, NULL))
        return false;
    if (count == INT64_MIN) {
        engine_reply_error(call->reply, "ERR value is out of range, value must between "
                                        "-9223372036854775807 and 9223372036854775807");
        return false;
    }
    *ret = count;
    return true;
}

bool engine_sample_fits(struct engine_call *call, uint64_t n)
{
    if (n <= call->config->proto_max_bulk_len / BULK_MIN || call->reply->limit > 0)
        return true;
    engine_reply_error(call->reply, "ERR value is out of range");
    return false;
}

bool engine_sample_takes(struct engine_call *call, struct engine_sample *pick)
{
    bool takes = pick->need > 0 && engine_random_below(call, pick->left) < pick->need;
    pick->left--;
    pick->need -= takes;
    return takes;
}

static void walk(struct engine_call *call, struct engine_table *t, size_t n, void **out)
{
    struct engine_sample pick = {.need = n, .left = engine_table_count(t)};
    struct engine_table_iter it;
    engine_table_iter_begin(&it, t);
    for (void *item; pick.need > 0 && (item = engine_table_iter_next(&it)) != NULL;)
        if (engine_sample_takes(call, &pick))
            *out++ = item;
    engine_table_iter_end(&it);
}

/* Selected items are kept in a table until there are enough. */
static void draw(struct engine_call *call, const struct engine_table *t, size_t n, void **out)
{
    struct engine_table taken;
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_OTHER);
    engine_table_init(&taken, t->type, engine_table_seed());
    for (size_t got = 0; got < n;) {
        struct engine_table_slot slot;
        void *item = engine_table_random(t, engine_random(call));
        if (engine_table_find_or_slot(&taken, t->type->name(item), &slot) != NULL)
            continue;
        engine_table_add_at(&taken, &slot, item);
        out[got++] = item;
    }
    engine_table_done(&taken);
    engine_mem_leave(before);
}

void **engine_sample_items(struct engine_call *call, struct engine_table *t, size_t n)
{
    void **items = engine_scratch_alloc(n * sizeof *items);
    engine_table_step(t, 1);
    if (n >= engine_table_count(t) / 3)
        walk(call, t, n, items);
    else
        draw(call, t, n, items);
    return items;
}
