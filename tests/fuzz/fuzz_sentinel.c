/* fuzz_sentinel.c - a Sentinel takes any configuration, hello message and reply to INFO. What it
 * writes is what it reads back.
 *
 * The input is split at lines of "--": configuration, INFO of the master, INFO of a replica, and
 * then hello messages, one a line.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/words.h"
#include "sentinel/sentinel_impl.h"
#include "tests/support/chance.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LINES_MAX = 128, INPUT_MAX = 16384, TICKS = 12 };

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_sentinel: %s\n", what);
    abort();
}

static uint64_t random_number(void *ctx)
{
    return chance_next(ctx);
}

static bool resolve(void *ctx, const char *name, char ret_ip[SENTINEL_IP_MAX + 1])
{
    (void)ctx;
    snprintf(ret_ip, SENTINEL_IP_MAX + 1, "10.9.0.%u", (unsigned)(strlen(name) % 250));
    return name[0] != 'x';
}

static bool runnable(void *ctx, const char *path)
{
    (void)ctx;
    return path[0] == '/';
}

static struct sentinel *make(uint64_t *state)
{
    const struct sentinel_opts opts = {.ctx = state,
                                       .random = random_number,
                                       .resolve = resolve,
                                       .runnable = runnable,
                                       .port = SENTINEL_PORT};
    struct sentinel *s = sentinel_new(&opts);
    check(s != NULL, "out of memory");
    return s;
}

/* ---- the configuration ---- */

static struct rd_slice next_line(struct rd_slice *rest)
{
    if (rest->len == 0)
        return *rest;
    const uint8_t *end = memchr(rest->ptr, '\n', rest->len);
    size_t len = end != NULL ? (size_t)(end - rest->ptr) : rest->len;
    struct rd_slice line = rd_slice(rest->ptr, len);
    *rest = rd_slice(rest->ptr + len + (end != NULL), rest->len - len - (end != NULL));
    return line;
}

static bool load(struct sentinel *s, struct rd_slice text)
{
    struct rd_words words[LINES_MAX] = {{0}};
    struct sentinel_line lines[LINES_MAX];
    size_t n = 0, bad;
    const char *why;
    bool ok = true;
    for (; text.len > 0 && n < LINES_MAX && ok; n++) {
        ok = rd_words_split(&words[n], next_line(&text));
        size_t skip = ok && words[n].argc > 0 && rd_slice_is(words[n].argv[0], "sentinel");
        lines[n] = (struct sentinel_line){skip > 0 ? words[n].argv + 1 : words[n].argv,
                                          ok ? words[n].argc - skip : 0};
    }
    ok = ok && sentinel_config_load(s, lines, n, 1000000, &bad, &why);
    for (size_t i = 0; i < LINES_MAX; i++)
        rd_words_done(&words[i]);
    return ok;
}

static void add_line(void *ctx, const char *option, const char *line, bool is_default)
{
    check(strncmp(line, option, strlen(option)) == 0, "a line of another option");
    (void)is_default;
    check(rd_buf_printf(ctx, "%s\n", line), "out of memory");
}

static void write_back(const struct sentinel *s)
{
    uint64_t state = 1;
    struct sentinel *again = make(&state);
    struct rd_buf text = {0}, second = {0};
    sentinel_config_write(s, add_line, &text);
    size_t n_lines = 0;
    for (size_t i = 0; i < text.len; i++)
        n_lines += text.ptr[i] == '\n';
    if (n_lines < LINES_MAX) {
        check(load(again, rd_buf_slice(&text)), "what was written cannot be read");
        sentinel_config_write(again, add_line, &second);
        check(rd_slice_eq(rd_buf_slice(&text), rd_buf_slice(&second)), "other when read back");
    }
    rd_buf_done(&text);
    rd_buf_done(&second);
    sentinel_free(again);
}

/* ---- what others say ---- */

struct peers {
    struct rd_slice master, replica;
};

static void answer(struct sentinel *s, const struct sentinel_action *a, const struct peers *peers,
                   bool to_master)
{
    struct sentinel_reply r = {.type = '+', .text = rd_slice_str("PONG")};
    if (rd_slice_is(a->argv[0], "INFO"))
        r = (struct sentinel_reply){.type = '$',
                                    .text = to_master ? peers->master : peers->replica};
    sentinel_replied(s, a->conn, &r);
}

static void act(struct sentinel *s, const struct peers *peers)
{
    struct sentinel_action a;
    while (sentinel_next(s, &a)) {
        if (a.kind == SENTINEL_CONNECT)
            sentinel_connected(s, a.conn, "10.0.1.1");
        else if (a.kind == SENTINEL_SEND)
            answer(s, &a, peers, a.conn % 2 == 0);
        else if (a.kind == SENTINEL_SAVE)
            sentinel_saved(s, true);
        else if (a.kind == SENTINEL_RUN)
            sentinel_script_started(s, a.script, a.script % 2 == 0 ? 0 : (int64_t)a.script);
    }
}

static void skip_field(void *ctx, const char *name, const char *value)
{
    (void)ctx;
    check(name[0] != 0 && value != NULL, "a field without a name");
}

static void look(struct sentinel *s)
{
    struct rd_buf out = {0};
    size_t usable;
    sentinel_info_section(s, &out);
    for (size_t i = 0; i < sentinel_count(s); i++) {
        struct sentinel_instance *m = sentinel_at(s, i);
        sentinel_report(s, m, skip_field, NULL);
        sentinel_quorum(s, m, &usable);
        for (size_t k = 0; k < sentinel_count_of(m, SENTINEL_REPLICAS); k++)
            sentinel_report(s, sentinel_at_of(m, SENTINEL_REPLICAS, k), skip_field, NULL);
    }
    rd_buf_done(&out);
}

static struct rd_slice part(struct rd_slice *rest)
{
    const uint8_t *end = rest->len >= 4 ? memmem(rest->ptr, rest->len, "\n--\n", 4) : NULL;
    size_t len = end != NULL ? (size_t)(end - rest->ptr) : rest->len;
    struct rd_slice taken = rd_slice(rest->ptr, len);
    *rest = end != NULL ? rd_slice(end + 4, rest->len - len - 4) : rd_slice(NULL, 0);
    return taken;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rd_slice rest = rd_slice(data, size), config;
    struct peers peers;
    uint64_t state = 1;
    if (size > INPUT_MAX)
        return 0;
    struct sentinel *s = make(&state);
    config = part(&rest);
    peers.master = part(&rest);
    peers.replica = part(&rest);
    if (load(s, config)) {
        sentinel_start(s);
        act(s, &peers);
        write_back(s);
        for (int i = 0; i < TICKS; i++) {
            sentinel_tick(s, 1000000 + i * 900);
            act(s, &peers);
            sentinel_hello(s, next_line(&rest));
            act(s, &peers);
        }
        look(s);
        write_back(s);
    }
    sentinel_free(s);
    return 0;
}
