#include "server/settings/item.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <syslog.h>

#include "base/mem.h"
#include "base/num.h"
#include "server/settings/text.h"

/* ---- the words of each ENUM, in the order of the error message ---- */

static const struct settings_word words_acl_pubsub_default[] = {
    {"allchannels", 1}, {"resetchannels", 0}, {0}};
static const struct settings_word words_appendfsync[] = {
    {"everysec", AOF_FSYNC_EVERYSEC}, {"always", AOF_FSYNC_ALWAYS}, {"no", AOF_FSYNC_NO}, {0}};
static const struct settings_word words_cluster_preferred_endpoint_type[] = {
    {"ip", SETTINGS_ENDPOINT_IP},
    {"hostname", SETTINGS_ENDPOINT_HOSTNAME},
    {"unknown-endpoint", SETTINGS_ENDPOINT_UNKNOWN},
    {0}};
static const struct settings_word words_allow[] = {
    {"no", SETTINGS_ALLOW_NO}, {"yes", SETTINGS_ALLOW_YES}, {"local", SETTINGS_ALLOW_LOCAL}, {0}};
#define words_enable_debug_command     words_allow
#define words_enable_module_command    words_allow
#define words_enable_protected_configs words_allow
static const struct settings_word words_loglevel[] = {{"debug", SETTINGS_LOG_DEBUG},
                                                      {"verbose", SETTINGS_LOG_VERBOSE},
                                                      {"notice", SETTINGS_LOG_NOTICE},
                                                      {"warning", SETTINGS_LOG_WARNING},
                                                      {0}};
static const struct settings_word words_maxmemory_policy[] = {
    {"volatile-lru", ENGINE_VOLATILE_LRU},
    {"volatile-lfu", ENGINE_VOLATILE_LFU},
    {"volatile-random", ENGINE_VOLATILE_RANDOM},
    {"volatile-ttl", ENGINE_VOLATILE_TTL},
    {"allkeys-lru", ENGINE_ALLKEYS_LRU},
    {"allkeys-lfu", ENGINE_ALLKEYS_LFU},
    {"allkeys-random", ENGINE_ALLKEYS_RANDOM},
    {"noeviction", ENGINE_NOEVICTION},
    {0}};
static const struct settings_word words_oom_score_adj[] = {{"no", SETTINGS_OOM_NO},
                                                           {"yes", SETTINGS_OOM_RELATIVE},
                                                           {"relative", SETTINGS_OOM_RELATIVE},
                                                           {"absolute", SETTINGS_OOM_ABSOLUTE},
                                                           {0}};
static const struct settings_word words_propagation_error_behavior[] = {
    {"ignore", SETTINGS_PROPAGATION_IGNORE},
    {"panic", SETTINGS_PROPAGATION_PANIC},
    {"panic-on-replicas", SETTINGS_PROPAGATION_PANIC_ON_REPLICAS},
    {0}};
static const struct settings_word words_redoubt_level[] = {{"7.0", ENGINE_LEVEL_7_0},
                                                           {"8.0", ENGINE_LEVEL_REDIS_8_0},
                                                           {"8.6", ENGINE_LEVEL_REDIS_8_6},
                                                           {"valkey-9.1", ENGINE_LEVEL_VALKEY_9_1},
                                                           {0}};
static const struct settings_word words_repl_diskless_load[] = {
    {"disabled", SETTINGS_DISKLESS_LOAD_NEVER},
    {"on-empty-db", SETTINGS_DISKLESS_LOAD_EMPTY},
    {"swapdb", SETTINGS_DISKLESS_LOAD_SWAPDB},
    {0}};
static const struct settings_word words_sanitize_dump_payload[] = {
    {"no", SETTINGS_SANITIZE_NO},
    {"yes", SETTINGS_SANITIZE_YES},
    {"clients", SETTINGS_SANITIZE_CLIENTS},
    {0}};
static const struct settings_word words_shutdown[] = {{"default", 0},
                                                      {"save", SETTINGS_SHUTDOWN_SAVE},
                                                      {"nosave", SETTINGS_SHUTDOWN_NOSAVE},
                                                      {"now", SETTINGS_SHUTDOWN_NOW},
                                                      {"force", SETTINGS_SHUTDOWN_FORCE},
                                                      {0}};
#define words_shutdown_on_sigint  words_shutdown
#define words_shutdown_on_sigterm words_shutdown
static const struct settings_word words_supervised[] = {{"upstart", SETTINGS_SUPERVISED_UPSTART},
                                                        {"systemd", SETTINGS_SUPERVISED_SYSTEMD},
                                                        {"auto", SETTINGS_SUPERVISED_AUTO},
                                                        {"no", SETTINGS_SUPERVISED_NO},
                                                        {0}};
static const struct settings_word words_syslog_facility[] = {
    {"user", LOG_USER},     {"local0", LOG_LOCAL0},
    {"local1", LOG_LOCAL1}, {"local2", LOG_LOCAL2},
    {"local3", LOG_LOCAL3}, {"local4", LOG_LOCAL4},
    {"local5", LOG_LOCAL5}, {"local6", LOG_LOCAL6},
    {"local7", LOG_LOCAL7}, {0}};
static const struct settings_word words_tls_auth_clients[] = {
    {"no", SETTINGS_TLS_AUTH_NO},
    {"yes", SETTINGS_TLS_AUTH_YES},
    {"optional", SETTINGS_TLS_AUTH_OPTIONAL},
    {0}};

/* ---- the table ---- */

const struct settings_item settings_items[] = {
#define X(f, n, a, v, fl)                                                                          \
    {.name = n,                                                                                    \
     .alias = a,                                                                                   \
     .value = (v) ? "yes" : "no",                                                                  \
     .kind = SETTINGS_KIND_BOOL,                                                                   \
     .flags = fl,                                                                                  \
     .offset = offsetof(struct settings, f)},
    SETTINGS_BOOL(X)
#undef X
#define X(f, n, a, v, lo, hi, fl)                                                                  \
    {.name = n,                                                                                    \
     .alias = a,                                                                                   \
     .value = #v,                                                                                  \
     .kind = SETTINGS_KIND_INT,                                                                    \
     .flags = fl,                                                                                  \
     .offset = offsetof(struct settings, f),                                                       \
     .min = lo,                                                                                    \
     .max = hi},
        SETTINGS_INT(X)
#undef X
#define X(f, n, a, v, lo, hi, fl)                                                                  \
    {.name = n,                                                                                    \
     .alias = a,                                                                                   \
     .value = #v,                                                                                  \
     .kind = SETTINGS_KIND_SIZE,                                                                   \
     .flags = fl,                                                                                  \
     .offset = offsetof(struct settings, f),                                                       \
     .min = lo,                                                                                    \
     .max = hi},
            SETTINGS_SIZE(X)
#undef X
#define X(f, n, a, v, fl)                                                                          \
    {.name = n,                                                                                    \
     .alias = a,                                                                                   \
     .value = v,                                                                                   \
     .kind = SETTINGS_KIND_STR,                                                                    \
     .flags = fl,                                                                                  \
     .offset = offsetof(struct settings, f)},
                SETTINGS_STR(X)
#undef X
#define X(f, n, a, v, fl)                                                                          \
    {.name = n,                                                                                    \
     .alias = a,                                                                                   \
     .value = v,                                                                                   \
     .kind = SETTINGS_KIND_ENUM,                                                                   \
     .flags = fl,                                                                                  \
     .offset = offsetof(struct settings, f),                                                       \
     .words = words_##f},
                    SETTINGS_ENUM(X)
#undef X
#define X(f, n, a, v, fl)                                                                          \
    {.name = n,                                                                                    \
     .alias = a,                                                                                   \
     .value = v,                                                                                   \
     .kind = SETTINGS_KIND_SPECIAL,                                                                \
     .flags = fl,                                                                                  \
     .special = &settings_##f},
                        SETTINGS_SPECIAL(X)
#undef X
};

const size_t settings_n_items = sizeof settings_items / sizeof *settings_items;

const struct settings_item *settings_item_find(const char *name)
{
    for (size_t i = 0; i < settings_n_items; i++) {
        const struct settings_item *item = &settings_items[i];
        if (strcasecmp(item->name, name) == 0 ||
            (item->alias != NULL && strcasecmp(item->alias, name) == 0))
            return item;
    }
    return NULL;
}

/* The field with the length of a password; 0: the value is text. */
static size_t length_field(const struct settings_item *item)
{
    if (item->kind != SETTINGS_KIND_STR)
        return 0;
    return item->offset == offsetof(struct settings, requirepass)
               ? offsetof(struct settings, requirepass_len)
           : item->offset == offsetof(struct settings, masterauth)
               ? offsetof(struct settings, masterauth_len)
               : 0;
}

bool settings_item_is_password(const struct settings_item *item)
{
    return length_field(item) != 0;
}

void settings_item_set_password(struct settings *s, const struct settings_item *item,
                                struct rd_slice password)
{
    char **text = (char **)((char *)s + item->offset);
    char *copy = settings_text_copy((const char *)password.ptr, password.len);
    rd_free(*text);
    *text = copy;
    *(size_t *)((char *)s + length_field(item)) = password.len;
}

/* ---- reading ---- */

static bool refuse(struct settings_reading *reading, const char *fmt, ...) RD_PRINTF(2, 3);

static bool refuse(struct settings_reading *reading, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(reading->why, sizeof reading->why, fmt, args);
    va_end(args);
    return false;
}

static void *field(struct settings *s, const struct settings_item *item)
{
    return (char *)s + item->offset;
}

static const void *field_const(const struct settings *s, const struct settings_item *item)
{
    return (const char *)s + item->offset;
}

static bool set_bool(bool *ret, const struct settings_item *item, const char *word,
                     struct settings_reading *reading)
{
    bool yes = strcasecmp(word, "yes") == 0;
    if (!yes && strcasecmp(word, "no") != 0)
        return refuse(reading, "argument must be 'yes' or 'no'");
    if (yes && strcmp(item->name, "activedefrag") == 0)
        return refuse(reading, "Active defragmentation cannot be enabled: it requires a Redis "
                               "server compiled with a modified Jemalloc like the one shipped by "
                               "default with the Redis source distribution");
    *ret = yes;
    return true;
}

static bool set_int(int64_t *ret, const struct settings_item *item, const char *word,
                    struct settings_reading *reading)
{
    int64_t value;
    if ((item->flags & S_OCTAL) != 0) {
        char *end;
        value = strtoll(word, &end, 8);
        if (*end != '\0' || value < 0)
            return refuse(reading, "argument couldn't be parsed as an octal number");
        if (value > (int64_t)item->max)
            return refuse(reading, "argument must be between %llo and %llo inclusive",
                          (unsigned long long)item->min, (unsigned long long)item->max);
    } else if (!rd_num_get_i64(rd_slice_str(word), &value)) {
        return refuse(reading, "argument couldn't be parsed into an integer");
    }
    if (value < item->min || value > (int64_t)item->max)
        return refuse(reading, "argument must be between %lld and %lld inclusive",
                      (long long)item->min, (long long)item->max);
    *ret = value;
    return true;
}

bool settings_item_memory(const char *text, uint64_t *ret)
{
    static const struct {
        const char *unit;
        uint64_t bytes;
    } units[] = {{"", 1},           {"b", 1},          {"k", 1000},
                 {"kb", 1024},      {"m", 1000000},    {"mb", 1024 * 1024},
                 {"g", 1000000000}, {"gb", 1ULL << 30}};
    uint64_t value = 0;
    for (; *text >= '0' && *text <= '9'; text++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value)) {
            value = UINT64_MAX;
            text += strspn(text, "0123456789");
            break;
        }
    }
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcasecmp(text, units[i].unit) == 0) {
            if (__builtin_mul_overflow(value, units[i].bytes, ret))
                *ret = UINT64_MAX;
            return true;
        }
    }
    return false;
}

/* "5%" is stored as minus five, so that one field holds both forms. */
static bool set_percent(uint64_t *ret, const char *word, struct settings_reading *reading)
{
    size_t len = strlen(word);
    uint64_t value;
    if (len > 1 && word[len - 1] == '%') {
        if (!rd_num_get_u64(rd_slice(word, len - 1), &value) || value > INT64_MAX)
            return refuse(reading, "argument must be a memory or percent value");
        if (value > 100)
            return refuse(reading, "percentage argument must be less or equal to 100");
        *ret = 0 - value;
        return true;
    }
    if (!settings_item_memory(word, &value))
        return refuse(reading, "argument must be a memory or percent value");
    *ret = value;
    return true;
}

static bool set_size(uint64_t *ret, const struct settings_item *item, const char *word,
                     struct settings_reading *reading)
{
    uint64_t value;
    int64_t number;
    if ((item->flags & S_PERCENT) != 0)
        return set_percent(ret, word, reading);
    if ((item->flags & S_MEMORY) != 0) {
        if (!settings_item_memory(word, &value))
            return refuse(reading, "argument must be a memory value");
    } else {
        if (!rd_num_get_i64(rd_slice_str(word), &number))
            return refuse(reading, "argument couldn't be parsed into an integer");
        value = number < 0 ? UINT64_MAX : (uint64_t)number;
    }
    if (value < (uint64_t)item->min || value > item->max)
        return refuse(reading, "argument must be between %llu and %llu inclusive",
                      (unsigned long long)item->min, (unsigned long long)item->max);
    *ret = value;
    return true;
}

static bool refuse_word(const struct settings_item *item, struct settings_reading *reading)
{
    size_t at = (size_t)snprintf(reading->why, sizeof reading->why,
                                 "argument(s) must be one of the following: ");
    for (const struct settings_word *w = item->words; w->word != NULL; w++)
        at += (size_t)snprintf(reading->why + at, sizeof reading->why - at, "%s%s",
                               w == item->words ? "" : ", ", w->word);
    return false;
}

static bool set_enum(int *ret, const struct settings_item *item, size_t n, char *const *words,
                     struct settings_reading *reading)
{
    int value = 0;
    if (n == 0)
        return refuse_word(item, reading);
    for (size_t i = 0; i < n; i++) {
        const struct settings_word *w = item->words;
        while (w->word != NULL && strcasecmp(w->word, words[i]) != 0)
            w++;
        if (w->word == NULL)
            return refuse_word(item, reading);
        value |= w->value;
    }
    int both = SETTINGS_SHUTDOWN_SAVE | SETTINGS_SHUTDOWN_NOSAVE;
    if (item->words == words_shutdown && (value & both) == both)
        return refuse(reading, "shutdown options SAVE and NOSAVE can't be used simultaneously");
    *ret = value;
    return true;
}

bool settings_item_set(struct settings *s, const struct settings_item *item, size_t n,
                       char *const *words, struct settings_reading *reading)
{
    if ((item->flags & S_MULTI) == 0 && n != 1)
        return refuse(reading, "wrong number of arguments");
    switch (item->kind) {
    case SETTINGS_KIND_BOOL:
        return set_bool(field(s, item), item, words[0], reading);
    case SETTINGS_KIND_INT:
        return set_int(field(s, item), item, words[0], reading);
    case SETTINGS_KIND_SIZE:
        return set_size(field(s, item), item, words[0], reading);
    case SETTINGS_KIND_ENUM:
        return set_enum(field(s, item), item, n, words, reading);
    case SETTINGS_KIND_SPECIAL:
        return item->special->set(s, n, words, reading);
    case SETTINGS_KIND_STR:
        break;
    }
    if (!settings_item_sound(item, words[0], reading))
        return false;
    if (settings_item_is_password(item))
        settings_item_set_password(s, item, rd_slice_str(words[0]));
    else
        settings_text_replace(field(s, item), words[0]);
    return true;
}

/* ---- printing ---- */

static void get_enum(int value, const struct settings_item *item, struct rd_buf *ret)
{
    bool several = (item->flags & S_MULTI) != 0, first = true;
    for (const struct settings_word *w = item->words; w->word != NULL; w++) {
        bool named = several && value != 0 ? (value & w->value) != 0 : value == w->value;
        if (!named)
            continue;
        rd_buf_printf(ret, "%s%s", first ? "" : " ", w->word);
        first = false;
        if (!several)
            return;
    }
}

static void get_size(uint64_t value, const struct settings_item *item, struct rd_buf *ret)
{
    if ((item->flags & S_PERCENT) != 0 && value > INT64_MAX)
        rd_buf_printf(ret, "%llu%%", (unsigned long long)(0 - value));
    else
        rd_buf_printf(ret, "%llu", (unsigned long long)value);
}

void settings_item_get(const struct settings *s, const struct settings_item *item,
                       struct rd_buf *ret)
{
    const void *at = field_const(s, item);
    switch (item->kind) {
    case SETTINGS_KIND_BOOL:
        rd_buf_printf(ret, "%s", *(const bool *)at ? "yes" : "no");
        break;
    case SETTINGS_KIND_INT:
        if ((item->flags & S_OCTAL) != 0)
            rd_buf_printf(ret, "%llo", (unsigned long long)*(const int64_t *)at);
        else
            rd_buf_printf(ret, "%lld", (long long)*(const int64_t *)at);
        break;
    case SETTINGS_KIND_SIZE:
        get_size(*(const uint64_t *)at, item, ret);
        break;
    case SETTINGS_KIND_STR:
        if (settings_item_is_password(item))
            rd_buf_add(ret, *(char *const *)at,
                       *(const size_t *)((const char *)s + length_field(item)));
        else
            rd_buf_printf(ret, "%s", *(char *const *)at);
        break;
    case SETTINGS_KIND_ENUM:
        get_enum(*(const int *)at, item, ret);
        break;
    case SETTINGS_KIND_SPECIAL:
        item->special->get(s, ret);
        break;
    }
}
