#include "server/surface/observe/crash_details.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "server/loop/background.h"
#include "server/loop/log.h"

enum { PAGE = 4096, REGIONS_MAX = 128, LINE_MAX_LEN = 512, CODE_MAX = 8192, CODE_AFTER = 128 };

/* ---- settings ---- */

void crash_config(const struct server *srv)
{
    static const char *const names[] = {
        "lazyfree-lazy-eviction",   "lazyfree-lazy-user-del",
        "list-compress-depth",      "sanitize-dump-payload",
        "repl-diskless-load",       "io-threads",
        "repl-diskless-sync",       "replica-read-only",
        "proto-max-bulk-len",       "activedefrag",
        "lazyfree-lazy-user-flush", "client-query-buffer-limit",
        "lazyfree-lazy-server-del", "lazyfree-lazy-expire",
        "io-threads-do-reads",
    };
    struct rd_buf text = {0};
    log_raw("\n------ CONFIG DEBUG OUTPUT ------\n");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        rd_buf_printf(&text, "%s ", names[i]);
        settings_get(&srv->loop.settings, names[i], &text);
        rd_buf_add_byte(&text, '\n');
    }
    if (rd_buf_add_byte(&text, '\0'))
        log_raw((const char *)text.ptr);
}

/* ---- memory ---- */

struct region {
    uintptr_t from, to;
};

/* "7f00-7f10 rw-p 00000000 00:00 0 [name]": private memory of this process, except the stack of the
 * main thread, which runs this. */
static bool parse_region(const char *line, struct region *ret)
{
    char *end;
    ret->from = strtoull(line, &end, 16);
    if (*end != '-')
        return false;
    ret->to = strtoull(end + 1, &end, 16);
    return strncmp(end, " rw-p ", 6) == 0 && strstr(end, " 00:00 0") != NULL &&
           strstr(end, "[stack") == NULL;
}

/* No stdio, which would allocate memory. */
static size_t find_regions(struct region *list, size_t max)
{
    char line[LINE_MAX_LEN], piece[PAGE];
    size_t len = 0, n = 0;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    for (ssize_t got; fd >= 0 && (got = read(fd, piece, sizeof piece)) > 0;) {
        for (ssize_t i = 0; i < got; i++) {
            if (piece[i] != '\n') {
                if (len < sizeof line - 1)
                    line[len++] = piece[i];
                continue;
            }
            line[len] = '\0';
            len = 0;
            if (n < max && parse_region(line, &list[n]))
                n++;
        }
    }
    if (fd >= 0)
        close(fd);
    return n;
}

static bool holds_pattern(volatile uint64_t *words, uint64_t pattern)
{
    for (size_t i = 0; i < PAGE / sizeof *words; i++)
        words[i] = pattern ^ i;
    bool same = true;
    for (size_t i = 0; i < PAGE / sizeof *words; i++)
        same &= words[i] == (pattern ^ i);
    return same;
}

/* No function may be called until the content of the page is restored. */
static bool page_is_sound(uintptr_t page)
{
    volatile uint64_t *words = (volatile uint64_t *)page; /* NOLINT */
    uint64_t kept[PAGE / sizeof(uint64_t)];
    for (size_t i = 0; i < PAGE / sizeof *words; i++)
        kept[i] = words[i];
    bool sound = holds_pattern(words, 0) && holds_pattern(words, UINT64_MAX) &&
                 holds_pattern(words, 0x5555555555555555) &&
                 holds_pattern(words, 0xaaaaaaaaaaaaaaaa);
    for (size_t i = 0; i < PAGE / sizeof *words; i++)
        words[i] = kept[i];
    return sound;
}

/* Pages that are not resident stay so. */
static bool region_is_sound(const struct region *r)
{
    bool sound = true;
    for (uintptr_t page = r->from; page < r->to; page += PAGE) {
        unsigned char there = 0;
        if (mincore((void *)page, PAGE, &there) == 0 && (there & 1) != 0) /* NOLINT */
            sound &= page_is_sound(page);
    }
    return sound;
}

/* With a sanitizer, the shadow memory has terabytes. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { TESTED_MAX = 0 };
#else
enum { TESTED_MAX = REGIONS_MAX };
#endif

void crash_memory_test(const struct server *srv)
{
    struct region list[REGIONS_MAX];
    char line[128];
    bool sound = true;
    log_raw("\n------ FAST MEMORY TEST ------\n");
    background_kill(srv->loop.background);
    size_t n = find_regions(list, TESTED_MAX);
    for (size_t i = 0; i < n; i++) {
        snprintf(line, sizeof line, "*** Preparing to test memory region %llx (%llu bytes)\n",
                 (unsigned long long)list[i].from, (unsigned long long)(list[i].to - list[i].from));
        log_raw(line);
    }
    for (size_t i = 0; i < n; i++) {
        bool good = region_is_sound(&list[i]);
        log_raw(good ? ".O" : ".E");
        sound &= good;
    }
    log_raw(sound ? "\nFast memory test PASSED, however your memory can still be broken. Please "
                    "run a memory test for several hours if possible.\n"
                  : "\n!!! MEMORY ERROR DETECTED! Check your memory ASAP !!!\n");
}

/* ---- code ---- */

static void dump(const void *from, size_t len)
{
    static uint8_t bytes[CODE_MAX];
    static char digits[2 * CODE_MAX + 2];
    struct iovec there = {(void *)(uintptr_t)from, len}, here = {bytes, len}; /* NOLINT */
    ssize_t got = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
    log_warning("dump of function (hexdump of %zd bytes):", got > 0 ? got : 0);
    size_t at = 0;
    for (ssize_t i = 0; i < got; i++) {
        static const char hex[] = "0123456789abcdef";
        digits[at++] = hex[bytes[i] >> 4];
        digits[at++] = hex[bytes[i] & 15];
    }
    digits[at++] = '\n';
    digits[at] = '\0';
    log_raw(digits);
}

void crash_code(const void *instruction)
{
    Dl_info info = {0};
    char line[512];
    if (instruction == NULL || dladdr(instruction, &info) == 0)
        return;
    log_raw("\n------ DUMPING CODE AROUND EIP ------\n");
    const void *from = info.dli_saddr != NULL ? info.dli_saddr : instruction;
    snprintf(line, sizeof line, "Symbol: %s (base: %p)\nModule: %.200s (base %p)\n",
             info.dli_sname != NULL ? info.dli_sname : "?", info.dli_saddr,
             info.dli_fname != NULL ? info.dli_fname : "?", info.dli_fbase);
    log_raw(line);
    snprintf(line, sizeof line,
             "$ xxd -r -p dump.hex dump.bin\n"
             "$ objdump --adjust-vma=%p -D -b binary -m i386:x86-64 dump.bin\n------\n",
             from);
    log_raw(line);
    size_t len = (size_t)((const char *)instruction - (const char *)from) + CODE_AFTER;
    dump(len <= CODE_MAX ? from : instruction, len <= CODE_MAX ? len : CODE_AFTER);
}
