#include "server/loop/heap.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/os.h"

/* NULL unless the program is linked with jemalloc. */
extern int mallctl(const char *name, void *old, size_t *old_len, void *fresh, size_t fresh_len)
    __attribute__((weak));

extern void malloc_stats_print(void (*write)(void *ctx, const char *text), void *ctx,
                               const char *opts) __attribute__((weak));

#define ALL_ARENAS "arena.4096"

static bool ask_size(const char *name, uint64_t *ret)
{
    size_t value, len = sizeof value;
    if (mallctl(name, &value, &len, NULL, 0) != 0)
        return false;
    *ret = value;
    return true;
}

bool heap_ask(struct heap *ret)
{
    if (mallctl == NULL)
        return false;
    uint64_t epoch = 1; /* updates the figures */
    size_t len = sizeof epoch;
    mallctl("epoch", &epoch, &len, &epoch, len);
    return ask_size("stats.allocated", &ret->allocated) && ask_size("stats.active", &ret->active) &&
           ask_size("stats.resident", &ret->resident);
}

const char *heap_name(void)
{
    static char name[64];
    const char *version;
    size_t len = sizeof version;
    if (mallctl == NULL || mallctl("version", &version, &len, NULL, 0) != 0)
        return "libc";
    snprintf(name, sizeof name, "jemalloc-%.*s", (int)strcspn(version, "-"), version);
    return name;
}

static void add_text(void *ctx, const char *text)
{
    rd_buf_add(ctx, text, strlen(text));
}

void heap_report(struct rd_buf *out)
{
    if (malloc_stats_print != NULL) {
        malloc_stats_print(add_text, out, NULL);
        return;
    }
    struct rd_heap heap = rd_heap();
    rd_buf_printf(out,
                  "allocator: libc\nin use: %zu\nfree: %zu\nmapped separately: %zu (%zu blocks)\n"
                  "trimmable: %zu\n",
                  heap.used, heap.free, heap.mapped, heap.n_mapped, heap.trimmable);
}

void heap_purge(void)
{
    if (mallctl != NULL)
        mallctl(ALL_ARENAS ".purge", NULL, NULL, NULL, 0);
    else
        rd_heap_trim(0);
}

void heap_use_thread(bool yes)
{
    if (mallctl != NULL)
        mallctl("background_thread", NULL, NULL, &yes, sizeof yes);
}

/* Names refer to numbers of several sizes: tries each size. */
int heap_number(const char *name, uint64_t *ret, const uint64_t *fresh)
{
    static const size_t sizes[] = {sizeof(uint64_t), sizeof(uint32_t), sizeof(bool)};
    int error = ENOENT;
    for (size_t i = 0; mallctl != NULL && i < sizeof sizes / sizeof *sizes; i++) {
        uint64_t old = 0, value = fresh != NULL ? *fresh : 0;
        size_t len = sizes[i];
        error =
            mallctl(name, &old, &len, fresh != NULL ? &value : NULL, fresh != NULL ? sizes[i] : 0);
        if (error == 0)
            *ret = old;
        if (error != EINVAL)
            break;
    }
    return error;
}

int heap_text(const char *name, const char **ret)
{
    size_t len = sizeof *ret;
    return mallctl != NULL ? mallctl(name, ret, &len, NULL, 0) : ENOENT;
}

int heap_do(const char *name)
{
    return mallctl != NULL ? mallctl(name, NULL, NULL, NULL, 0) : ENOENT;
}
