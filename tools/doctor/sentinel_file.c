/* sentinel_file.c - reads the configuration of a Sentinel, as the Sentinel itself reads it. */
#include "tools/doctor/sentinel.h"

#include "base/mem.h"
#include "base/words.h"
#include "backup/system.h"
#include "sentinel/sentinel.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { FILE_MAX = 64 * 1024 * 1024 };

struct lines {
    struct rd_words *words; /* of lines that begin with `sentinel` */
    struct sentinel_line *lines;
    size_t *numbers; /* of these lines in the file */
    size_t n;
};

/* ---- its lines ---- */

static bool add_line(struct lines *all, struct rd_words *words, size_t number, struct rd_err *err)
{
    struct rd_words *w = rd_realloc(all->words, (all->n + 1) * sizeof *w);
    if (w != NULL)
        all->words = w;
    size_t *numbers = rd_realloc(all->numbers, (all->n + 1) * sizeof *numbers);
    if (numbers != NULL)
        all->numbers = numbers;
    if (w == NULL || numbers == NULL)
        return rd_err_nomem(err, (all->n + 1) * sizeof *w);
    all->words[all->n] = *words;
    all->numbers[all->n++] = number;
    *words = (struct rd_words){0};
    return true;
}

static bool split_line(struct doctor_sentinel *s, struct lines *all, struct rd_slice text,
                       size_t number, struct rd_err *err)
{
    struct rd_words words = {0};
    while (text.len > 0 && strchr(" \t\r\n", text.ptr[text.len - 1]) != NULL)
        text.len--;
    while (text.len > 0 && strchr(" \t", text.ptr[0]) != NULL)
        text = rd_slice(text.ptr + 1, text.len - 1);
    if (text.len == 0 || text.ptr[0] == '#')
        return true;
    bool ok = true;
    if (!rd_words_split(&words, text)) {
        if (s->bad_line[0] == 0)
            snprintf(s->bad_line, sizeof s->bad_line, "line %zu has unbalanced quotes", number);
    } else if (words.argc > 0 && rd_word_is(words.argv[0], "sentinel")) {
        ok = add_line(all, &words, number, err);
    }
    rd_words_done(&words);
    return ok;
}

static bool split_all(struct doctor_sentinel *s, struct lines *all, struct rd_slice text,
                      struct rd_err *err)
{
    for (size_t number = 1; text.len > 0; number++) {
        const uint8_t *end = memchr(text.ptr, '\n', text.len);
        size_t len = end != NULL ? (size_t)(end - text.ptr) : text.len;
        if (!split_line(s, all, rd_slice(text.ptr, len), number, err))
            return false;
        len += end != NULL;
        text = rd_slice(text.ptr + len, text.len - len);
    }
    all->lines = rd_calloc(all->n + 1, sizeof *all->lines);
    if (all->lines == NULL)
        return rd_err_nomem(err, (all->n + 1) * sizeof *all->lines);
    for (size_t i = 0; i < all->n; i++)
        all->lines[i] = (struct sentinel_line){all->words[i].argv + 1, all->words[i].argc - 1};
    return true;
}

static void drop_lines(struct lines *all)
{
    for (size_t i = 0; i < all->n; i++)
        rd_words_done(&all->words[i]);
    rd_free(all->words);
    rd_free(all->lines);
    rd_free(all->numbers);
}

/* ---- what they mean ---- */

static uint64_t no_chance(void *ctx)
{
    (void)ctx;
    return 0;
}

/* Hosts keep their names. */
static bool any_name(void *ctx, const char *name, char ret_ip[SENTINEL_IP_MAX + 1])
{
    (void)ctx;
    (void)name;
    ret_ip[0] = 0;
    return true;
}

/* Scripts have a check of their own. */
static bool any_script(void *ctx, const char *path)
{
    (void)ctx;
    (void)path;
    return true;
}

static void set_field(void *ctx, const char *name, const char *value)
{
    doctor_instance_set(ctx, rd_slice_str(name), rd_slice_str(value));
}

static bool copy_list(const struct sentinel *from, const struct sentinel_instance *master,
                      enum sentinel_of of, struct doctor_instances *to, struct rd_err *err)
{
    for (size_t i = 0; i < sentinel_count_of(master, of); i++) {
        struct doctor_instance *instance = doctor_instances_add(to, err);
        if (instance == NULL)
            return false;
        sentinel_report(from, sentinel_at_of(master, of, i), set_field, instance);
        instance->flags[0] = 0; /* a file has no state */
    }
    return true;
}

static bool copy_masters(struct doctor_view *view, const struct sentinel *from, struct rd_err *err)
{
    for (size_t i = 0; i < sentinel_count(from); i++) {
        const struct sentinel_instance *master = sentinel_at(from, i);
        struct doctor_master *m = doctor_view_add(view, err);
        if (m == NULL)
            return false;
        sentinel_report(from, master, set_field, &m->self);
        m->self.flags[0] = 0;
        if (!copy_list(from, master, SENTINEL_REPLICAS, &m->replicas, err) ||
            !copy_list(from, master, SENTINEL_SENTINELS, &m->sentinels, err))
            return false;
    }
    return true;
}

static bool load(struct doctor_sentinel *s, const struct lines *all, struct rd_err *err)
{
    const struct sentinel_opts opts = {
        .random = no_chance, .resolve = any_name, .runnable = any_script, .port = SENTINEL_PORT};
    struct sentinel *sentinel = sentinel_new(&opts);
    size_t bad;
    const char *why;
    if (sentinel == NULL)
        return rd_err_nomem(err, sizeof *s);
    if (!sentinel_config_load(sentinel, all->lines, all->n, 1, &bad, &why) && s->bad_line[0] == 0)
        snprintf(s->bad_line, sizeof s->bad_line, "line %zu: %s", all->numbers[bad], why);
    bool ok = !sentinel_no_memory(sentinel) || rd_err_nomem(err, sizeof *s);
    ok = ok && copy_masters(&s->own, sentinel, err);
    sentinel_free(sentinel);
    return ok;
}

bool doctor_read_sentinel(struct doctor *d, const char *path, struct rd_err *err)
{
    struct rd_buf text = {0};
    struct lines all = {0};
    struct doctor_sentinel *s = d->sentinel = rd_calloc(1, sizeof *s);
    if (s == NULL)
        return rd_err_nomem(err, sizeof *s);
    d->file = path;
    if (realpath(path, s->file) == NULL)
        snprintf(s->file, sizeof s->file, "%s", path);
    bool ok = backup_read_file(path, FILE_MAX, &text, err) &&
              split_all(s, &all, rd_buf_slice(&text), err);
    if (ok && all.n == 0 && s->bad_line[0] == 0) {
        ok = rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                        "no line begins with `sentinel`: not the configuration of a Sentinel");
        rd_err_origin(err, path);
    }
    ok = ok && load(s, &all, err);
    drop_lines(&all);
    if (text.len > 0)
        explicit_bzero(text.ptr, text.len); /* it can contain passwords */
    rd_buf_done(&text);
    return ok;
}
