/* redis.conf and the command line: both become lines for one parser. */
#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/words.h"
#include "server/settings/item.h"
#include "server/settings/text.h"

enum {
    FILE_MAX = 64 << 20, /* maximum bytes of a file */
    INCLUDE_MAX = 32     /* nested include files */
};

struct reading {
    struct settings *s;
    const struct settings_readers *readers;
    struct settings_reading value; /* .why: the error of a line */
    struct rd_buf *why;            /* the whole message */
    unsigned depth;
    const char *line; /* the present one, and its number */
    size_t number;
};

static bool load_named(struct reading *r, const char *name);

static bool wrong(struct reading *r, const char *why)
{
    snprintf(r->value.why, sizeof r->value.why, "%s", why);
    return false;
}

static bool wrong_words(struct reading *r, const char *why)
{
    snprintf(r->value.why, sizeof r->value.why, "%s in configuration line", why);
    return false;
}

/* ---- lines other than values ---- */

static bool line_include(struct reading *r, size_t n, char **words)
{
    (void)n;
    if (r->depth == INCLUDE_MAX)
        return wrong(r, "too many nested include directives");
    r->depth++;
    bool ok = load_named(r, words[1]);
    r->depth--;
    return ok;
}

static bool line_rename(struct reading *r, size_t n, char **words)
{
    (void)n;
    struct rd_slice from = rd_slice_str(words[1]), to = rd_slice_str(words[2]);
    if (names_find(&r->s->names, from) == NULL)
        return wrong(r, "No such command in rename-command");
    if (!names_rename(&r->s->names, from, to))
        return wrong(r, "Target command name already exists");
    struct settings *s = r->s;
    struct settings_rename *grown = rd_realloc(s->renames, (s->n_renames + 1) * sizeof *s->renames);
    if (grown == NULL)
        abort();
    s->renames = grown;
    s->renames[s->n_renames++] = (struct settings_rename){settings_text_copy(words[1], from.len),
                                                          settings_text_copy(words[2], to.len)};
    return true;
}

/* The words after the first, each as given. */
static char *rest_of(size_t n, char **words)
{
    struct rd_buf line = {0};
    for (size_t i = 1; i < n; i++) {
        if (i > 1)
            rd_buf_add_byte(&line, ' ');
        bool plain = words[i][0] != '\0' && strpbrk(words[i], " \"'\\\t\r\n") == NULL;
        if (plain)
            rd_buf_printf(&line, "%s", words[i]);
        else
            settings_text_quote(words[i], &line);
    }
    char *rest = settings_text_copy((const char *)line.ptr, line.len);
    rd_buf_done(&line);
    return rest;
}

static bool line_module(struct reading *r, size_t n, char **words)
{
    char *rest = rest_of(n, words);
    settings_text_append(&r->s->modules, &r->s->n_modules, rest);
    rd_free(rest);
    return true;
}

static bool line_ignored(struct reading *r, size_t n, char **words)
{
    (void)r, (void)n, (void)words;
    return true;
}

static bool line_sentinel(struct reading *r, size_t n, char **words)
{
    struct settings *s = r->s;
    (void)words;
    if (!s->sentinel)
        return wrong(r, "sentinel directive while not in sentinel mode");
    if (n < 2)
        return true;
    struct settings_sentinel_line *grown =
        rd_realloc(s->sentinel_lines, (s->n_sentinel_lines + 1) * sizeof *grown);
    if (grown == NULL)
        abort();
    s->sentinel_lines = grown;
    s->sentinel_lines[s->n_sentinel_lines++] =
        (struct settings_sentinel_line){settings_text_copy(r->line, strlen(r->line)), r->number};
    return true;
}

static const struct {
    const char *name;
    size_t min, max; /* words, including the name */
    bool (*run)(struct reading *r, size_t n, char **words);
} lines[] = {
    {"include", 2, 2, line_include},
    {"rename-command", 3, 3, line_rename},
    {"loadmodule", 2, SIZE_MAX, line_module},
    {"sentinel", 1, SIZE_MAX, line_sentinel},
    /* Directives of older versions: accepted without effect. */
    {"list-max-ziplist-entries", 2, 2, line_ignored},
    {"list-max-ziplist-value", 2, 2, line_ignored},
    {"lua-replicate-commands", 2, 2, line_ignored},
};

static bool other_line(struct reading *r, size_t n, char **words)
{
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (strcasecmp(words[0], lines[i].name) == 0 && n >= lines[i].min && n <= lines[i].max)
            return lines[i].run(r, n, words);
    }
    if (strchr(words[0], '.') != NULL && n < 2)
        return wrong(r, "Module config specified without value");
    return wrong(r, "Bad directive or wrong number of arguments");
}

/* ---- lines that are ---- */

/* `save "900 1 300 10"` is the same as without the quotes. */
static bool value_line(struct reading *r, const struct settings_item *item, size_t n, char **words)
{
    bool one = (item->flags & S_MULTI) != 0 && n == 2 && words[1][0] != '\0';
    if (!one)
        return settings_item_set(r->s, item, n - 1, words + 1, &r->value);
    char **parts;
    size_t n_parts;
    const char *why = settings_text_split(words[1], &parts, &n_parts);
    if (why != NULL)
        return wrong_words(r, why);
    bool ok = settings_item_set(r->s, item, n_parts, parts, &r->value);
    settings_text_free(parts, n_parts);
    return ok;
}

/* A password with all of its bytes, since text cannot contain a NUL. False: another directive, or
 * an invalid line. */
static bool password_line(struct reading *r, const char *line)
{
    struct rd_words words = {0};
    const struct settings_item *item = NULL;
    if (rd_words_split(&words, rd_slice_str(line)) && words.argc == 2)
        item = settings_item_find((const char *)words.argv[0].ptr);
    bool found = item != NULL && settings_item_is_password(item);
    if (found)
        settings_item_set_password(r->s, item, words.argv[1]);
    rd_words_done(&words);
    return found;
}

static bool is_defined(const struct settings *s, struct rd_slice user)
{
    bool found = false;
    for (size_t i = 0; i < s->n_users && !found; i++) {
        struct rd_words words = {0};
        found =
            rd_words_split(&words, rd_slice_str(s->users[i])) && rd_slice_eq(words.argv[1], user);
        rd_words_done(&words);
    }
    return found;
}

static bool is_word(struct rd_slice bytes, const char *word)
{
    return bytes.len == strlen(word) && strncasecmp((const char *)bytes.ptr, word, bytes.len) == 0;
}

/* A user line is kept as it is: its passwords can contain any bytes. False: another directive;
 * *ret_ok: the rules are valid. */
static bool user_line(struct reading *r, const char *line, bool *ret_ok)
{
    struct rd_words words = {0};
    struct rd_buf why = {0};
    bool found = rd_words_split(&words, rd_slice_str(line)) && words.argc >= 2 &&
                 is_word(words.argv[0], "user");
    if (found && is_defined(r->s, words.argv[1]))
        rd_buf_printf(&why,
                      "Error in user declaration '%s': Duplicate user found. A user can only "
                      "be defined once in config files",
                      (const char *)words.argv[1].ptr);
    else if (found)
        r->readers->user(r->s, words.argv + 1, words.argc - 1, &why);
    *ret_ok = why.len == 0;
    if (found && *ret_ok)
        settings_text_append(&r->s->users, &r->s->n_users, line);
    else if (found)
        snprintf(r->value.why, sizeof r->value.why, "%.*s", (int)why.len, (const char *)why.ptr);
    rd_buf_done(&why);
    rd_words_done(&words);
    return found;
}

static bool one_line(struct reading *r, char *line)
{
    char **words;
    size_t n;
    if (*line == '#' || *line == '\0')
        return true;
    bool ok;
    if (password_line(r, line))
        return true;
    if (user_line(r, line, &ok))
        return ok;
    const char *why = settings_text_split(line, &words, &n);
    if (why != NULL)
        return wrong_words(r, why);
    const struct settings_item *item = n != 0 ? settings_item_find(words[0]) : NULL;
    ok = n == 0 || (item != NULL ? value_line(r, item, n, words) : other_line(r, n, words));
    settings_text_free(words, n);
    return ok;
}

/* The text is modified. */
static bool all_lines(struct reading *r, char *text)
{
    for (size_t number = 1; text != NULL; number++) {
        char *next = strchr(text, '\n');
        if (next != NULL)
            *next++ = '\0';
        char *line = settings_text_trim(text);
        r->line = line;
        r->number = number;
        if (!one_line(r, line)) {
            if (r->why->len == 0)
                rd_buf_printf(r->why,
                              "\n*** FATAL CONFIG FILE ERROR (Redis %s) ***\n"
                              "Reading the configuration file, at line %zu\n>>> '%s'\n%s\n",
                              SERVER_REDIS_VERSION, number, line, r->value.why);
            return false;
        }
        text = next;
    }
    return true;
}

/* ---- files ---- */

static bool read_all(FILE *file, struct rd_buf *ret)
{
    char piece[4096];
    size_t n;
    while ((n = fread(piece, 1, sizeof piece, file)) > 0) {
        if (ret->len + n > FILE_MAX) {
            errno = EFBIG;
            return false;
        }
        if (!rd_buf_add(ret, piece, n))
            return false;
    }
    return ferror(file) == 0;
}

/* An unterminated last line must not join the first line of the next file. */
static void end_line(struct rd_buf *text)
{
    if (text->len != 0 && text->ptr[text->len - 1] != '\n')
        rd_buf_add_byte(text, '\n');
}

static bool add_file(struct reading *r, const char *name, struct rd_buf *text)
{
    end_line(text);
    FILE *file = fopen(name, "re");
    bool ok = file != NULL && read_all(file, text);
    int sys = errno;
    if (file != NULL)
        fclose(file);
    if (!ok)
        rd_buf_printf(r->why, "Fatal error, can't open config file '%s': %s", name, strerror(sys));
    return ok;
}

/* A name with * ? [ is a pattern, and may match nothing. */
static bool add_files(struct reading *r, const char *name, struct rd_buf *text)
{
    glob_t found;
    if (strpbrk(name, "*?[") == NULL)
        return add_file(r, name, text);
    bool ok = true;
    if (glob(name, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc && ok; i++)
            ok = add_file(r, found.gl_pathv[i], text);
        globfree(&found);
    }
    return ok;
}

static bool load_text(struct reading *r, struct rd_buf *text)
{
    bool ok = rd_buf_add_byte(text, '\0') && all_lines(r, (char *)text->ptr);
    rd_buf_done(text);
    return ok;
}

static bool load_named(struct reading *r, const char *name)
{
    struct rd_buf text = {0};
    if (!add_files(r, name, &text)) {
        rd_buf_done(&text);
        return false;
    }
    return load_text(r, &text);
}

/* ---- the command line ---- */

static bool is_option(const char *arg)
{
    return arg[0] == '-' && arg[1] == '-';
}

/* Whether "--name" includes its value, as in "--port 6380" in one argument. */
static bool has_value(const char *arg)
{
    char **words;
    size_t n;
    if (settings_text_split(arg, &words, &n) != NULL)
        return false;
    settings_text_free(words, n);
    return n != 1;
}

/* Options become lines: each argument that begins with "--" starts a line, unless the previous one
 * still needs its first word. `--save` alone is `save ""`. */
static void options_to_lines(int argc, char **argv, int from, bool *ret_stdin, struct rd_buf *text)
{
    bool complete = true; /* the previous option has a word */
    for (int i = from; i < argc; i++) {
        const char *arg = argv[i];
        if (strcmp(arg, "-") == 0 && (i == 1 || i == argc - 1)) {
            *ret_stdin = true;
            continue;
        }
        if (strcmp(arg, "--sentinel") == 0) /* it has no value, and is not a line */
            continue;
        if (!is_option(arg) || !complete) {
            settings_text_quote(arg, text);
            rd_buf_add_byte(text, ' ');
            complete = true;
            continue;
        }
        if (text->len != 0)
            rd_buf_add_byte(text, '\n');
        rd_buf_printf(text, "%s ", arg + 2);
        complete = has_value(arg);
        bool last = i == argc - 1, bare = last || is_option(argv[i + 1]);
        if (strcasecmp(arg, "--save") == 0 && bare) {
            rd_buf_printf(text, "\"\"");
            complete = true;
        }
    }
}

static char *absolute(const char *name)
{
    char here[PATH_MAX];
    if (name[0] == '/' || getcwd(here, sizeof here) == NULL)
        return settings_text_copy(name, strlen(name));
    /* Each leading "../" of the name removes one directory. */
    size_t len = strlen(here);
    while (strncmp(name, "../", 3) == 0 && len > 1) {
        name += 3;
        while (len > 1 && here[len - 1] != '/')
            len--;
        while (len > 1 && here[len - 1] == '/')
            len--;
    }
    struct rd_buf path = {0};
    rd_buf_printf(&path, "%.*s%s%s", (int)len, here, len > 1 ? "/" : "", name);
    char *copy = settings_text_copy((const char *)path.ptr, path.len);
    rd_buf_done(&path);
    return copy;
}

static bool fatal(struct reading *r, const char *what, const char *more)
{
    rd_buf_printf(r->why, "\n*** FATAL CONFIG FILE ERROR (Redis %s) ***\n%s%s\n",
                  SERVER_REDIS_VERSION, what, more);
    return false;
}

/* Checks across lines. A log file that cannot be written is an error before any line is lost. */
static bool load_checked(struct reading *r)
{
    if (r->s->cluster_enabled && r->s->replicaof_host != NULL)
        return fatal(r, "replicaof directive not allowed in cluster mode", "");
    if (r->s->logfile[0] != '\0') {
        FILE *file = fopen(r->s->logfile, "ae");
        if (file == NULL)
            return fatal(r, "Can't open the log file: ", strerror(errno));
        fclose(file);
    }
    if (r->s->hz < SETTINGS_HZ_MIN)
        r->s->hz = SETTINGS_HZ_MIN;
    if (r->s->hz > SETTINGS_HZ_MAX)
        r->s->hz = SETTINGS_HZ_MAX;
    return true;
}

bool settings_load(struct settings *s, int argc, char **argv,
                   const struct settings_readers *readers, char **ret_file, struct rd_buf *why)
{
    struct reading r = {.s = s, .readers = readers, .value = {.at_start = true}, .why = why};
    struct rd_buf text = {0}, options = {0};
    bool named = argc >= 2 && argv[1][0] != '-', from_stdin = false, ok = true;
    char *file = named ? absolute(argv[1]) : NULL;
    options_to_lines(argc, argv, named ? 2 : 1, &from_stdin, &options);
    if (named)
        ok = add_files(&r, file, &text);
    if (ok && from_stdin) {
        readers->note("Reading config from stdin");
        end_line(&text);
        ok = read_all(stdin, &text);
    }
    if (options.len != 0) {
        rd_buf_add_byte(&text, '\n');
        rd_buf_add(&text, options.ptr, options.len);
    }
    rd_buf_done(&options);
    if (ok)
        ok = load_text(&r, &text) && load_checked(&r);
    else
        rd_buf_done(&text);
    if (ok)
        *ret_file = file;
    else
        rd_free(file);
    return ok;
}
