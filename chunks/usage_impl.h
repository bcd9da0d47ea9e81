/* usage_impl.h - private to usage.c, sweep.c, rewrite.c and examine.c: what the sets of a target
 * need. */
#ifndef CHUNKS_USAGE_IMPL_H
#define CHUNKS_USAGE_IMPL_H

#include "chunks/parent_impl.h"
#include "chunks/usage.h"

struct chunks_used {
    uint8_t name[CHUNKS_NAME];
    uint8_t kind;
    bool taken;    /* the place in the table is not free */
    uint32_t from; /* of names: the pack that recipes name */
    uint32_t pack; /* of names: where it is now */
    uint32_t key;  /* of the lineage */
    uint32_t set;  /* the first set that needs it */
    bool several;  /* others need it, too */
    uint64_t offset;
    uint32_t stored, raw;
};

/* Packs that recipes name, and those into which their blobs were moved. */
struct chunks_name {
    char name[CHUNKS_PACK_NAME_MAX];
    uint64_t live;             /* bytes of blobs that are needed and are here */
    bool named;                /* by a recipe */
    bool has_moves;            /* there is a list of what was moved */
    struct chunks_moves moves; /* then */
};

struct chunks_names {
    struct chunks_name *at;
    size_t n;
};

/* NULL: none. */
struct chunks_name *chunks_names_find(const struct chunks_names *names, const char *name);

#endif
