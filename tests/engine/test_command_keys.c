/* The keys of a command line are those that the command uses: the rules of users rest on that. */
#include "ask.h"

#include "engine/command.h"

enum { LINES = 3000, WORDS_MAX = 40, TOUCHED_MAX = 16 };

static uint64_t state;

static unsigned chance(unsigned n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % n;
}

/* ---- what a command touches ---- */

static struct rd_slice touched[TOUCHED_MAX];
static size_t n_touched;
static char names[TOUCHED_MAX][32];

static void on_touched(void *ctx, struct rd_slice key, unsigned db, bool by_command)
{
    (void)ctx, (void)db, (void)by_command;
    cr_assert(n_touched < TOUCHED_MAX && key.len < sizeof names[0]);
    memcpy(names[n_touched], key.ptr, key.len);
    touched[n_touched] = rd_slice(names[n_touched], key.len);
    n_touched++;
}

static bool is_found(const struct rd_slice *argv, const struct engine_key *keys, size_t n,
                     struct rd_slice name, unsigned uses)
{
    for (size_t i = 0; i < n; i++)
        if (rd_slice_eq(argv[keys[i].index], name) && (keys[i].flags & uses) != 0)
            return true;
    return false;
}

/* ---- random lines ---- */

/* A group of options: each takes words of `values`, and `%` stands for one of the names. */
struct form {
    const char *begin, *end;
    const char *options[12];
};

static const char *const odd_names[] = {"store", "STOREDIST", "get",   "by",  "limit",
                                        "count", "streams",   "GROUP", "asc", "x"};

static const struct form forms[] = {
    {"SORT list",
     "",
     {"STORE %", "store %", "LIMIT 0 5", "BY nothing", "GET #", "ASC", "ALPHA", NULL}},
    {"GEORADIUS places 1 1 500 km",
     "",
     {"STORE %", "STOREDIST %", "store %", "COUNT 2", "ASC", "desc", NULL}},
    {"GEORADIUSBYMEMBER places a 500 km",
     "",
     {"STORE %", "STOREDIST %", "storedist %", "COUNT 2 ANY", "ASC", NULL}},
    {"XREADGROUP",
     "STREAMS stream >",
     {"GROUP g %", "group streams %", "COUNT 3", "NOACK", "GROUP g %", NULL}},
    {"XREADGROUP",
     "streams stream other > 0",
     {"GROUP g streams", "GROUP g STREAMS", "GROUP streams streams", "COUNT 3", NULL}},
};

static void add_words(char *line, const char *words)
{
    size_t len = strlen(line);
    for (; *words != '\0'; words++)
        if (*words == '%')
            len += (size_t)sprintf(line + len, "%s",
                                   odd_names[chance(sizeof odd_names / sizeof *odd_names)]);
        else
            line[len++] = *words;
    line[len] = '\0';
}

static void make_line(char *line, const struct form *form)
{
    unsigned n_options = 0;
    while (form->options[n_options] != NULL)
        n_options++;
    line[0] = '\0';
    add_words(line, form->begin);
    for (unsigned n = chance(6); n > 0; n--) {
        strcat(line, " ");
        add_words(line, form->options[chance(n_options)]);
    }
    strcat(line, " ");
    add_words(line, form->end);
}

static void fill(struct ask *ask)
{
    static const char *const lines[] = {
        "FLUSHALL",
        "RPUSH list 3 1 2",
        "GEOADD places 1 1 a 2 2 b",
        "XADD stream * f v",
        "XADD other * f v",
        "XGROUP CREATE stream g 0",
        "XGROUP CREATE stream streams 0",
        "XGROUP CREATE other g 0",
        "XGROUP CREATE other streams 0",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        cr_assert_neq(*ask_line(ask, lines[i]), '-', "%s", ask->text);
}

/* Whether the line was valid. */
static bool check_line(struct ask *ask, const char *line, const char *source)
{
    struct engine_key keys[WORDS_MAX];
    size_t n = 0;
    fill(ask);
    n_touched = 0;
    if (*ask_line(ask, line) == '-')
        return false;
    const struct engine_command *cmd = engine_command_find(ask->argv[0]);
    size_t argc = 1;
    for (const char *at = strchr(line, ' '); at != NULL; at = strchr(at + 1, ' '))
        argc += at[1] != ' ' && at[1] != '\0';
    cr_assert_eq(engine_command_keys(cmd, ask->argv, argc, keys, WORDS_MAX, &n), ENGINE_KEYS_OK,
                 "%s", line);
    cr_assert(is_found(ask->argv, keys, n, rd_slice_str(source), ENGINE_KEY_ACCESS), "%s", line);
    bool stores = cmd->group != ENGINE_GROUP_STREAM;
    for (size_t i = 0; stores && i < n_touched; i++)
        cr_assert(is_found(ask->argv, keys, n, touched[i],
                           ENGINE_KEY_UPDATE | ENGINE_KEY_INSERT | ENGINE_KEY_DELETE),
                  "%s: %.*s", line, (int)touched[i].len, (const char *)touched[i].ptr);
    /* A destination that is checked is one that is written. */
    for (size_t k = 0; stores && k < n; k++) {
        bool written = (keys[k].flags & ENGINE_KEY_UPDATE) == 0;
        for (size_t i = 0; i < n_touched; i++)
            written |= rd_slice_eq(touched[i], ask->argv[keys[k].index]);
        cr_assert(written, "%s: %zu", line, keys[k].index);
    }
    return true;
}

Test(command_keys, the_keys_that_are_found_are_those_that_are_used)
{
    static const char *const sources[] = {"list", "places", "places", "stream", "other"};
    struct ask ask;
    unsigned n_valid[sizeof forms / sizeof *forms] = {0};
    char line[1024];
    ask_init(&ask, ENGINE_CLIENT);
    struct engine_listener listener = {.touched = on_touched};
    engine_listen(ask.engine, &listener);
    state = 1;
    for (unsigned i = 0; i < LINES; i++) {
        size_t form = i % (sizeof forms / sizeof *forms);
        make_line(line, &forms[form]);
        n_valid[form] += check_line(&ask, line, sources[form]);
    }
    for (size_t form = 0; form < sizeof forms / sizeof *forms; form++)
        cr_assert(n_valid[form] > 50, "%s: %u", forms[form].begin, n_valid[form]);
    ask_done(&ask);
}

Test(command_keys, an_argument_is_not_taken_for_an_option)
{
    static const struct {
        const char *line;
        size_t keys[3]; /* indexes; 0: no more */
    } cases[] = {
        {"GEORADIUS k 1 1 1 km STORE a STORE b", {1, 9}},
        {"GEORADIUS k 1 1 1 km STOREDIST a STORE b", {1, 9}},
        {"GEORADIUS k 1 1 1 km STORE a STOREDIST b", {1, 9}},
        {"GEORADIUS k 1 1 1 km STORE store", {1, 7}},
        {"GEORADIUSBYMEMBER k m 1 km storedist a COUNT 1 storedist b", {1, 10}},
        {"SORT k STORE a STORE b", {1, 5}},
        {"SORT k STORE get STORE b", {1, 5}},
        {"SORT k STORE limit STORE by STORE b", {1, 7}},
        {"SORT k BY store GET store STORE b", {1, 7}},
        {"XREADGROUP COUNT 1 GROUP streams c STREAMS k >", {7}},
        {"XREADGROUP COUNT 1 GROUP g streams STREAMS k >", {7}},
        {"XREADGROUP GROUP a streams GROUP streams streams STREAMS k >", {8}},
        {"XREADGROUP NOACK NOACK GROUP STREAMS STREAMS STREAMS k >", {7}},
        {"XREAD COUNT 1 BLOCK 1 STREAMS streams k 0 0", {6, 7}},
    };
    char copy[256];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rd_slice argv[WORDS_MAX];
        struct engine_key keys[WORDS_MAX];
        size_t argc = 0, n = 0;
        strcpy(copy, cases[i].line);
        for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " "))
            argv[argc++] = rd_slice_str(word);
        cr_assert_eq(
            engine_command_keys(engine_command_find(argv[0]), argv, argc, keys, WORDS_MAX, &n),
            ENGINE_KEYS_OK);
        for (size_t k = 0; k < 3; k++)
            cr_assert_eq(k < n ? keys[k].index : 0, cases[i].keys[k], "%s: %zu is %zu",
                         cases[i].line, k, k < n ? keys[k].index : 0);
    }
}
