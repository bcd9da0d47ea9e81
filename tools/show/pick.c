/* pick.c - selects commands. */
#include "tools/show/show.h"

#include <ctype.h>

void show_pick_init(struct show_pick *pick, struct cli *cli)
{
    *pick = (struct show_pick){.from_ms = INT64_MIN, .until_ms = INT64_MIN};
    cli_filter_init(&pick->keys, cli, 0);
    cli_filter_init(&pick->dbs, cli, 0);
}

void show_pick_done(struct show_pick *pick)
{
    filter_done(&pick->keys);
    filter_done(&pick->dbs);
}

bool show_pick_check(struct show_pick *pick, struct rd_err *err)
{
    if (pick->negate)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "--not must be followed by a filter option");
    return (pick->from_text == NULL || rebuild_place_parse(&pick->from, pick->from_text, err)) &&
           (pick->until_text == NULL || rebuild_place_parse(&pick->until, pick->until_text, err));
}

bool show_pick_active(const struct show_pick *pick)
{
    return pick->key_rule || filter_active(&pick->dbs) || pick->n_commands > 0 ||
           pick->min_size > 0 || pick->max_size > 0 || pick->from_ms != INT64_MIN ||
           pick->until_ms != INT64_MIN || pick->from_text != NULL || pick->until_text != NULL;
}

static bool in_range(const struct show_pick *pick, const struct show_item *item)
{
    if (pick->from_ms != INT64_MIN && item->time_us < rebuild_stream_us(pick->from_ms))
        return false;
    if (pick->until_ms != INT64_MIN && item->time_us != SHOW_NO_TIME &&
        item->time_us / 1000 > pick->until_ms)
        return false;
    if (pick->from_text != NULL &&
        rebuild_place_compare(&pick->from, item->index, item->offset) < 0)
        return false;
    return pick->until_text == NULL ||
           rebuild_place_compare(&pick->until, item->index, item->offset) <= 0;
}

static bool wants_key(const struct filter *filter, struct rd_slice key, uint64_t db)
{
    const struct rdb_event ev = {.kind = RDB_KEY, .key = {.name = key, .db = db}};
    return filter_wants(filter, &ev);
}

static bool on_key(void *ctx, struct rd_slice key)
{
    const struct show_pick *pick = ctx;
    return wants_key(&pick->keys, key, pick->db);
}

static bool wants_keys(struct show_pick *pick, const struct show_item *item)
{
    pick->db = item->db;
    if (!wants_key(&pick->dbs, rd_slice("", 0), item->db))
        return false;
    return !pick->key_rule || show_keys(item->command, on_key, pick);
}

static bool is_named(const struct show_pick *pick, struct rd_slice name)
{
    char small[SHOW_COMMAND];
    size_t len = name.len < sizeof small ? name.len : sizeof small;
    for (size_t i = 0; i < len; i++)
        small[i] = (char)tolower(name.ptr[i]);
    for (size_t i = 0; i < pick->n_commands; i++)
        if (filter_glob(rd_slice_str(pick->commands[i]), rd_slice(small, len)))
            return true;
    return pick->n_commands == 0;
}

bool show_pick_wants(struct show_pick *pick, const struct show_item *item)
{
    return (pick->min_size == 0 || item->len >= pick->min_size) &&
           (pick->max_size == 0 || item->len <= pick->max_size) &&
           is_named(pick, item->command->argv[0]) && in_range(pick, item) && wants_keys(pick, item);
}

/* ---- options ---- */

bool show_pick_add_command(void *ctx, const char *value, struct rd_err *err)
{
    struct show_pick *pick = ctx;
    size_t len = strlen(value);
    if (pick->n_commands == SHOW_COMMANDS)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "too many --command options");
    if (len >= SHOW_COMMAND)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "--command: the name is too long");
    char *small = pick->commands[pick->n_commands++];
    for (size_t i = 0; i <= len; i++)
        small[i] = (char)tolower((unsigned char)value[i]);
    return true;
}

bool show_pick_add_not(void *ctx, const char *value, struct rd_err *err)
{
    struct show_pick *pick = ctx;
    (void)value;
    if (pick->negate)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "--not is given twice");
    pick->negate = true;
    return true;
}

typedef bool (*add_fn)(void *ctx, const char *value, struct rd_err *err);

static bool add_rule(struct show_pick *pick, struct filter *filter, add_fn add, const char *value,
                     struct rd_err *err)
{
    bool negate = pick->negate;
    pick->negate = false;
    pick->key_rule = pick->key_rule || filter == &pick->keys;
    return (!negate || filter_add_not(filter, NULL, err)) && add(filter, value, err);
}

bool show_pick_add_db(void *ctx, const char *value, struct rd_err *err)
{
    struct show_pick *pick = ctx;
    return add_rule(pick, &pick->dbs, filter_add_db, value, err);
}

bool show_pick_add_match(void *ctx, const char *value, struct rd_err *err)
{
    struct show_pick *pick = ctx;
    return add_rule(pick, &pick->keys, filter_add_match, value, err);
}

bool show_pick_add_match_regex(void *ctx, const char *value, struct rd_err *err)
{
    struct show_pick *pick = ctx;
    return add_rule(pick, &pick->keys, filter_add_match_regex, value, err);
}

bool show_pick_add_prefix(void *ctx, const char *value, struct rd_err *err)
{
    struct show_pick *pick = ctx;
    return add_rule(pick, &pick->keys, filter_add_prefix, value, err);
}

bool show_pick_add_slot(void *ctx, const char *value, struct rd_err *err)
{
    struct show_pick *pick = ctx;
    return add_rule(pick, &pick->keys, filter_add_slot, value, err);
}
