/* driver.c - runs a fuzz target without a fuzzing engine.
 *
 *     fuzz_NAME [--mutations=N] FILE_OR_FOLDER…
 *
 * Every file is given to LLVMFuzzerTestOneInput() as it is, then N times with some bytes changed.
 * The changes come from a generator that is seeded with the file's length and the number of the
 * mutation, so a failure can be repeated: the last line printed says which it was. Reports in the
 * Test Anything Protocol, one case a file.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/support/chance.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Larger files are the business of other tests: the time of a mutation grows with the file. */
enum { FILE_MAX = 1 << 20, MUTATED_MAX = 64 * 1024, PATH_LEN = 4096 };

static unsigned long mutations = 20;
static unsigned long n_cases;

/* Values at which lengths and counters turn over. */
static const uint8_t edges[] = {0x00, 0x01, 0x3f, 0x40, 0x7f, 0x80, 0x81, 0xbf, 0xc0, 0xfe, 0xff};

static void mutate_byte(uint8_t *bytes, size_t len, uint64_t *state)
{
    size_t at = (size_t)(chance_next(state) % len);
    switch (chance_next(state) % 4) {
    case 0:
        bytes[at] = (uint8_t)(bytes[at] ^ (1u << (chance_next(state) % 8)));
        break;
    case 1:
        bytes[at] = edges[chance_next(state) % sizeof edges];
        break;
    case 2:
        bytes[at] = (uint8_t)chance_next(state);
        break;
    default:
        bytes[at] = bytes[chance_next(state) % len];
        break;
    }
}

/* Changes up to eight bytes, and in one case of four cuts the end off. Returns the new length. */
static size_t mutate(uint8_t *bytes, size_t len, uint64_t seed)
{
    uint64_t state = seed;
    uint64_t changes = 1 + chance_next(&state) % 8;
    for (uint64_t i = 0; i < changes; i++)
        mutate_byte(bytes, len, &state);
    if (chance_next(&state) % 4 == 0)
        len = (size_t)(chance_next(&state) % len);
    return len;
}

/* The target gets a heap block of exactly `len` bytes, so that a sanitizer sees an over-read. */
static void run_input(const uint8_t *bytes, size_t len, unsigned long mutation)
{
    uint8_t *copy = malloc(len > 0 ? len : 1);
    if (copy == NULL)
        abort();
    if (len > 0)
        memcpy(copy, bytes, len);
    if (mutation > 0)
        len = mutate(copy, len, ((uint64_t)len << 20) + mutation);
    LLVMFuzzerTestOneInput(copy, len);
    free(copy);
}

static uint8_t *load(const char *path, size_t *ret_len)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = malloc(FILE_MAX);
    if (file == NULL || bytes == NULL) {
        perror(path);
        exit(1);
    }
    *ret_len = fread(bytes, 1, FILE_MAX, file);
    fclose(file);
    return bytes;
}

static void run_file(const char *path)
{
    size_t len;
    uint8_t *bytes = load(path, &len);
    printf("# %s\n", path);
    fflush(stdout);
    run_input(bytes, len, 0);
    for (unsigned long i = 1; i <= mutations && len > 0 && len <= MUTATED_MAX; i++) {
        printf("# mutation %lu\n", i);
        fflush(stdout);
        run_input(bytes, len, i);
    }
    printf("ok %lu - %s\n", ++n_cases, path);
    free(bytes);
}

static void run_path(const char *path);

static int is_not_hidden(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void run_folder(const char *path)
{
    struct dirent **entries;
    int n = scandir(path, &entries, is_not_hidden, alphasort);
    for (int i = 0; i < n; i++) {
        char inner[PATH_LEN];
        int len = snprintf(inner, sizeof inner, "%s/%s", path, entries[i]->d_name);
        if (len > 0 && (size_t)len < sizeof inner)
            run_path(inner);
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
}

static void run_path(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        perror(path);
        exit(1);
    }
    if (S_ISDIR(st.st_mode))
        run_folder(path);
    else if (S_ISREG(st.st_mode))
        run_file(path);
}

int main(int argc, char **argv)
{
    static const char option[] = "--mutations=";
    printf("TAP version 13\n");
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], option, sizeof option - 1) == 0)
            mutations = strtoul(argv[i] + sizeof option - 1, NULL, 10);
        else
            run_path(argv[i]);
    }
    /* Without any file the empty input still counts, so that a target without corpus is seen. */
    run_input((const uint8_t *)"", 0, 0);
    printf("ok %lu - the empty input\n1..%lu\n", n_cases + 1, n_cases + 1);
    return 0;
}
