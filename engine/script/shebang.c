/* The first line of a script or library. */
#include "base/words.h"
#include "engine/library.h"
#include "engine/mem.h"
#include "engine/script/run_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

char *script_text(const char *fmt, ...)
{
    enum { TEXT_MAX = 1024 };
    char *text = engine_scratch_alloc(TEXT_MAX);
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, TEXT_MAX, fmt, args);
    va_end(args);
    return text;
}

/* ---- flags ---- */

static const struct {
    const char *name;
    unsigned flag;
} flags[] = {
    {"no-writes", ENGINE_SCRIPT_NO_WRITES},
    {"allow-oom", ENGINE_SCRIPT_ALLOW_OOM},
    {"allow-stale", ENGINE_SCRIPT_ALLOW_STALE},
    {"no-cluster", ENGINE_SCRIPT_NO_CLUSTER},
    {"allow-cross-slot-keys", ENGINE_SCRIPT_ALLOW_CROSS_SLOT_KEYS},
};

enum { N_FLAGS = sizeof flags / sizeof *flags };

const char *script_flag_name(unsigned i, unsigned *ret_flag)
{
    if (i >= N_FLAGS)
        return NULL;
    *ret_flag = flags[i].flag;
    return flags[i].name;
}

unsigned script_flag(struct rd_slice name, bool any_case)
{
    for (unsigned i = 0; i < N_FLAGS; i++) {
        const char *word = flags[i].name;
        if (name.len == strlen(word) &&
            (any_case ? strncasecmp((const char *)name.ptr, word, name.len)
                      : memcmp(name.ptr, word, name.len)) == 0)
            return flags[i].flag;
    }
    return 0;
}

/* "a,b,c" */
static bool read_list(struct rd_slice list, unsigned *flags_so_far, char **ret_error)
{
    const uint8_t *p = list.ptr, *end = p + list.len;
    while (list.len > 0 && p <= end) {
        const uint8_t *comma = memchr(p, ',', (size_t)(end - p));
        const uint8_t *stop = comma != NULL ? comma : end;
        struct rd_slice name = rd_slice(p, (size_t)(stop - p));
        unsigned flag = script_flag(name, false);
        if (flag == 0) {
            *ret_error = script_text("ERR Unexpected flag in script shebang: %.*s", (int)name.len,
                                     (const char *)name.ptr);
            return false;
        }
        *flags_so_far |= flag;
        p = stop + 1;
    }
    return true;
}

static bool read_words(const struct rd_words *words, unsigned *ret_flags, char **ret_error)
{
    static const char key[] = "flags=";
    size_t n = sizeof key - 1;
    *ret_flags = 0;
    if (words->argc == 0 || !rd_slice_eq(words->argv[0], rd_slice_str("#!lua"))) {
        *ret_error = words->argc == 0 ? script_text("ERR Invalid engine in script shebang")
                                      : script_text("ERR Unexpected engine in script shebang: %s",
                                                    (const char *)words->argv[0].ptr);
        return false;
    }
    for (size_t i = 1; i < words->argc; i++) {
        struct rd_slice word = words->argv[i];
        if (word.len < n || memcmp(word.ptr, key, n) != 0) {
            *ret_error = script_text("ERR Unknown lua shebang option: %s", (const char *)word.ptr);
            return false;
        }
        if (!read_list(rd_slice(word.ptr + n, word.len - n), ret_flags, ret_error))
            return false;
    }
    return true;
}

bool script_read_flags(struct rd_slice body, unsigned *ret_flags, size_t *ret_len, char **ret_error)
{
    struct rd_words words = {0};
    *ret_flags = ENGINE_SCRIPT_NO_FLAGS;
    *ret_len = 0;
    if (body.len < 2 || body.ptr[0] != '#' || body.ptr[1] != '!')
        return true;
    const uint8_t *end = engine_library_line_end(body);
    if (end == NULL) {
        *ret_error = script_text("ERR Invalid script shebang");
        return false;
    }
    *ret_len = (size_t)(end - body.ptr);
    if (!rd_words_split(&words, rd_slice(body.ptr, *ret_len))) {
        *ret_error = script_text("ERR Invalid engine in script shebang");
        rd_words_done(&words);
        return false;
    }
    bool ok = read_words(&words, ret_flags, ret_error);
    rd_words_done(&words);
    return ok;
}
