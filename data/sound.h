/* sound.h - whether a snapshot is sound, for tools that must not pass on one that is not.
 *
 *     struct sound sound = {.name = "127.0.0.1:6379"};
 *     if (!sound_check(&sound, src, &err))
 *         ... it could not be read, or it is damaged: see err ...
 *     ... sound.res.keys ...
 */
#ifndef DATA_SOUND_H
#define DATA_SOUND_H

#include "rdb/check.h"

struct sound {
    const char *name;                                     /* of the snapshot, in errors */
    void (*event)(void *ctx, const struct rdb_event *ev); /* see rdb/check.h; may be NULL */
    void *ctx;
    uint64_t seed[2];            /* random, see rdb/check.h */
    struct rdb_check_result res; /* out */
    char finding[RD_ERR_TEXT_MAX + 60];
};

/* Reads src to its end and checks everything. False also where it is damaged. */
bool sound_check(struct sound *sound, struct rd_src *src, struct rd_err *err);

#endif
