#include "tests/support/guard.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The pointer does not show where its mapping begins, so the start is stored separately. */
struct mapping {
    struct mapping *next;
    uint8_t *ptr;
    uint8_t *base;
    size_t size;
};

static struct mapping *mappings;

uint8_t *guard_new(const void *bytes, size_t len)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t size = (len / page + 1) * page;
    struct mapping *mapping = malloc(sizeof *mapping);
    uint8_t *base =
        mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == NULL || base == MAP_FAILED || mprotect(base + size, page, PROT_NONE) != 0)
        abort();
    *mapping = (struct mapping){mappings, base + size - len, base, size + page};
    mappings = mapping;
    if (len > 0)
        memcpy(mapping->ptr, bytes, len);
    return mapping->ptr;
}

void guard_free(uint8_t *ptr)
{
    struct mapping **link = &mappings;
    if (ptr == NULL)
        return;
    while (*link != NULL && (*link)->ptr != ptr)
        link = &(*link)->next;
    struct mapping *mapping = *link;
    if (mapping == NULL)
        abort();
    *link = mapping->next;
    munmap(mapping->base, mapping->size);
    free(mapping);
}
