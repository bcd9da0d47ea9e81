/* Directives with values other than a number or a word. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "server/settings/item.h"
#include "server/settings/text.h"

static bool refuse(struct settings_reading *reading, const char *why)
{
    snprintf(reading->why, sizeof reading->why, "%s", why);
    return false;
}

/* ---- bind ---- */

enum { BIND_MAX = 16 };

static bool set_bind(struct settings *s, size_t n, char *const *words,
                     struct settings_reading *reading)
{
    if (n > BIND_MAX)
        return refuse(reading, "Too many bind addresses specified.");
    if (n == 1 && words[0][0] == '\0')
        n = 0;
    settings_text_free(s->bind, s->n_bind);
    s->bind = NULL;
    s->n_bind = 0;
    for (size_t i = 0; i < n; i++)
        settings_text_append(&s->bind, &s->n_bind, words[i]);
    return true;
}

static void get_bind(const struct settings *s, struct rd_buf *ret)
{
    for (size_t i = 0; i < s->n_bind; i++)
        rd_buf_printf(ret, "%s%s", i == 0 ? "" : " ", s->bind[i]);
}

const struct settings_special settings_bind = {set_bind, get_bind};

/* ---- client-output-buffer-limit ---- */

static int limit_class(const char *word)
{
    static const struct settings_word words[] = {{"normal", CLIENT_TYPE_NORMAL},
                                                 {"slave", CLIENT_TYPE_REPLICA},
                                                 {"replica", CLIENT_TYPE_REPLICA},
                                                 {"pubsub", CLIENT_TYPE_PUBSUB}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcasecmp(word, words[i].word) == 0)
            return words[i].value;
    }
    return -1;
}

static bool set_limit(struct settings *s, size_t n, char *const *words,
                      struct settings_reading *reading)
{
    struct settings_limit limits[CLIENT_TYPES];
    memcpy(limits, s->client_output_buffer_limit, sizeof limits);
    if (n % 4 != 0)
        return refuse(reading, "Wrong number of arguments in buffer limit configuration.");
    for (size_t i = 0; i < n; i += 4) {
        int class = limit_class(words[i]);
        if (class < 0)
            return refuse(reading, "Invalid client class specified in buffer limit configuration.");
        struct settings_limit *limit = &limits[class];
        char *end;
        long long seconds = strtoll(words[i + 3], &end, 10);
        if (!settings_item_memory(words[i + 1], &limit->hard) ||
            !settings_item_memory(words[i + 2], &limit->soft) || *end != '\0' || seconds < 0 ||
            seconds > INT_MAX)
            return refuse(reading, "Error in hard, soft or soft_seconds setting in buffer limit "
                                   "configuration.");
        limit->soft_seconds = seconds;
    }
    memcpy(s->client_output_buffer_limit, limits, sizeof limits);
    return true;
}

static void get_limit(const struct settings *s, struct rd_buf *ret)
{
    static const char *const names[CLIENT_TYPES] = {"normal", "slave", "pubsub"};
    for (size_t i = 0; i < CLIENT_TYPES; i++) {
        const struct settings_limit *limit = &s->client_output_buffer_limit[i];
        rd_buf_printf(ret, "%s%s %llu %llu %lld", i == 0 ? "" : " ", names[i],
                      (unsigned long long)limit->hard, (unsigned long long)limit->soft,
                      (long long)limit->soft_seconds);
    }
}

const struct settings_special settings_client_output_buffer_limit = {set_limit, get_limit};

/* ---- dir ---- */

static bool set_dir(struct settings *s, size_t n, char *const *words,
                    struct settings_reading *reading)
{
    (void)n;
    if (chdir(words[0]) != 0)
        return refuse(reading, strerror(errno));
    settings_text_replace(&s->dir, words[0]);
    return true;
}

static void get_dir(const struct settings *s, struct rd_buf *ret)
{
    char here[PATH_MAX];
    (void)s;
    if (getcwd(here, sizeof here) != NULL)
        rd_buf_printf(ret, "%s", here);
}

const struct settings_special settings_dir = {set_dir, get_dir};

/* ---- latency-tracking-info-percentiles ---- */

static bool set_percentiles(struct settings *s, size_t n, char *const *words,
                            struct settings_reading *reading)
{
    double values[sizeof s->latency_tracking_info_percentiles / sizeof(double)];
    if (n == 1 && words[0][0] == '\0')
        n = 0;
    if (n > sizeof values / sizeof *values)
        return refuse(reading, "Invalid latency-tracking-info-percentiles parameters");
    for (size_t i = 0; i < n; i++) {
        if (!rd_num_get_f64(rd_slice_str(words[i]), &values[i]) || values[i] != values[i])
            return refuse(reading, "Invalid latency-tracking-info-percentiles parameters");
        if (values[i] > 100.0 || values[i] < 0.0)
            return refuse(reading, "latency-tracking-info-percentiles parameters should sit "
                                   "between [0.0,100.0]");
    }
    memcpy(s->latency_tracking_info_percentiles, values, n * sizeof *values);
    s->n_latency_tracking_info_percentiles = n;
    return true;
}

static void get_percentiles(const struct settings *s, struct rd_buf *ret)
{
    for (size_t i = 0; i < s->n_latency_tracking_info_percentiles; i++) {
        char digits[64];
        int len = snprintf(digits, sizeof digits, "%.6f", s->latency_tracking_info_percentiles[i]);
        while (digits[len - 1] == '0')
            len--;
        if (digits[len - 1] == '.')
            len--;
        rd_buf_printf(ret, "%s%.*s", i == 0 ? "" : " ", len, digits);
    }
}

const struct settings_special settings_latency_tracking_info_percentiles = {set_percentiles,
                                                                            get_percentiles};

/* ---- notify-keyspace-events ---- */

static const struct {
    char letter;
    unsigned bits;
} event_letters[] = {
    {'g', ENGINE_NOTIFY_GENERIC},  {'$', ENGINE_NOTIFY_STRING},  {'l', ENGINE_NOTIFY_LIST},
    {'s', ENGINE_NOTIFY_SET},      {'h', ENGINE_NOTIFY_HASH},    {'z', ENGINE_NOTIFY_ZSET},
    {'x', ENGINE_NOTIFY_EXPIRED},  {'e', ENGINE_NOTIFY_EVICTED}, {'t', ENGINE_NOTIFY_STREAM},
    {'d', ENGINE_NOTIFY_MODULE},   {'n', ENGINE_NOTIFY_NEW},     {'K', ENGINE_NOTIFY_KEYSPACE},
    {'E', ENGINE_NOTIFY_KEYEVENT}, {'m', ENGINE_NOTIFY_MISS},
};

enum {
    N_EVENT_LETTERS = sizeof event_letters / sizeof *event_letters,
    N_EVENT_CLASSES = 10, /* included in "A" */
    EVENTS_ALL = ENGINE_NOTIFY_GENERIC | ENGINE_NOTIFY_STRING | ENGINE_NOTIFY_LIST |
                 ENGINE_NOTIFY_SET | ENGINE_NOTIFY_HASH | ENGINE_NOTIFY_ZSET |
                 ENGINE_NOTIFY_EXPIRED | ENGINE_NOTIFY_EVICTED | ENGINE_NOTIFY_STREAM |
                 ENGINE_NOTIFY_MODULE
};

unsigned settings_events_parse(struct rd_slice letters)
{
    unsigned events = 0;
    for (size_t i = 0; i < letters.len; i++) {
        unsigned bits = letters.ptr[i] == 'A' ? (unsigned)EVENTS_ALL : 0;
        for (size_t k = 0; k < N_EVENT_LETTERS && bits == 0; k++) {
            if (event_letters[k].letter == (char)letters.ptr[i])
                bits = event_letters[k].bits;
        }
        if (bits == 0)
            return UINT_MAX;
        events |= bits;
    }
    return events;
}

void settings_events_print(unsigned events, struct rd_buf *ret)
{
    size_t from = 0;
    if ((events & EVENTS_ALL) == EVENTS_ALL) {
        rd_buf_add_byte(ret, 'A');
        from = N_EVENT_CLASSES + 1; /* 7.0 does not print 'n' after 'A' */
    }
    for (size_t k = from; k < N_EVENT_LETTERS; k++) {
        if ((events & event_letters[k].bits) != 0)
            rd_buf_add_byte(ret, (uint8_t)event_letters[k].letter);
    }
}

static bool set_events(struct settings *s, size_t n, char *const *words,
                       struct settings_reading *reading)
{
    (void)n;
    unsigned events = settings_events_parse(rd_slice_str(words[0]));
    if (events == UINT_MAX)
        return refuse(reading, "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.");
    s->notify_keyspace_events = events;
    return true;
}

static void get_events(const struct settings *s, struct rd_buf *ret)
{
    settings_events_print(s->notify_keyspace_events, ret);
}

const struct settings_special settings_notify_keyspace_events = {set_events, get_events};

/* ---- oom-score-adj-values ---- */

static bool set_oom_values(struct settings *s, size_t n, char *const *words,
                           struct settings_reading *reading)
{
    int values[3];
    if (n != 3)
        return refuse(reading, "wrong number of arguments");
    for (size_t i = 0; i < 3; i++) {
        char *end;
        long long value = strtoll(words[i], &end, 10);
        if (*end != '\0' || value < -2000 || value > 2000)
            return refuse(reading, "Invalid oom-score-adj-values, elements must be between -2000 "
                                   "and 2000.");
        values[i] = (int)value;
    }
    memcpy(s->oom_score_adj_values, values, sizeof values);
    return true;
}

static void get_oom_values(const struct settings *s, struct rd_buf *ret)
{
    const int *values = s->oom_score_adj_values;
    rd_buf_printf(ret, "%d %d %d", values[0], values[1], values[2]);
}

const struct settings_special settings_oom_score_adj_values = {set_oom_values, get_oom_values};

/* ---- proc-title-template ---- */

static bool set_title(struct settings *s, size_t n, char *const *words,
                      struct settings_reading *reading)
{
    (void)n;
    struct rd_buf title = {0};
    bool sound = settings_title(s, NULL, words[0], "", &title);
    rd_buf_done(&title);
    if (!sound)
        return refuse(reading, "template format is invalid or contains unknown variables");
    settings_text_replace(&s->proc_title_template, words[0]);
    return true;
}

static void get_title(const struct settings *s, struct rd_buf *ret)
{
    rd_buf_printf(ret, "%s", s->proc_title_template);
}

const struct settings_special settings_proc_title_template = {set_title, get_title};

/* ---- replicaof ---- */

static bool set_replicaof(struct settings *s, size_t n, char *const *words,
                          struct settings_reading *reading)
{
    if (n == 0 || (n == 1 && words[0][0] == '\0')) {
        rd_free(s->replicaof_host);
        s->replicaof_host = NULL;
        return true;
    }
    if (n != 2)
        return refuse(reading, "wrong number of arguments");
    if (strcasecmp(words[0], "no") == 0 && strcasecmp(words[1], "one") == 0) {
        rd_free(s->replicaof_host);
        s->replicaof_host = NULL;
        return true;
    }
    char *end;
    long long port = strtoll(words[1], &end, 10);
    if (*end != '\0' || port < 0 || port > 65535)
        return refuse(reading, "Invalid master port");
    settings_text_replace(&s->replicaof_host, words[0]);
    s->replicaof_port = port;
    return true;
}

static void get_replicaof(const struct settings *s, struct rd_buf *ret)
{
    if (s->replicaof_host != NULL)
        rd_buf_printf(ret, "%s %lld", s->replicaof_host, (long long)s->replicaof_port);
}

const struct settings_special settings_replicaof = {set_replicaof, get_replicaof};

/* ---- save ---- */

/* As in Redis 7.0, an empty word is 0. */
static bool save_number(const char *word, long long min, int64_t *ret)
{
    char *end;
    long long value = strtoll(word, &end, 10);
    if (*end != '\0' || value < min)
        return false;
    *ret = value;
    return true;
}

/* Lines of a file add up, and the first one replaces the default; CONFIG SET replaces all. */
static bool set_save(struct settings *s, size_t n, char *const *words,
                     struct settings_reading *reading)
{
    if (n == 1 && words[0][0] == '\0') {
        s->n_save = 0;
        reading->save_seen = true;
        return true;
    }
    struct settings_save *points = settings_text_room(n / 2, sizeof *points);
    bool sound = n % 2 == 0;
    for (size_t i = 0; i + 1 < n && sound; i += 2)
        sound = save_number(words[i], 1, &points[i / 2].seconds) &&
                save_number(words[i + 1], 0, &points[i / 2].changes);
    if (!sound) {
        rd_free(points);
        return refuse(reading, "Invalid save parameters");
    }
    size_t kept = reading->at_start && reading->save_seen ? s->n_save : 0;
    struct settings_save *all = settings_text_room(kept + n / 2, sizeof *all);
    if (kept != 0)
        memcpy(all, s->save, kept * sizeof *all);
    memcpy(all + kept, points, n / 2 * sizeof *all);
    rd_free(points);
    rd_free(s->save);
    s->save = all;
    s->n_save = kept + n / 2;
    reading->save_seen = true;
    return true;
}

static void get_save(const struct settings *s, struct rd_buf *ret)
{
    for (size_t i = 0; i < s->n_save; i++)
        rd_buf_printf(ret, "%s%lld %lld", i == 0 ? "" : " ", (long long)s->save[i].seconds,
                      (long long)s->save[i].changes);
}

const struct settings_special settings_save = {set_save, get_save};
