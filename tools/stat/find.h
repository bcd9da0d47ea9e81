/* find.h - what the statistics say in words, and what to do about it.
 *
 *     struct stat_finding found[STAT_FINDINGS_MAX];
 *     size_t n = stat_find(&read, found);
 *
 * All of the text is printable ASCII: names of keys are quoted and escaped.
 */
#ifndef TOOLS_STAT_FIND_H
#define TOOLS_STAT_FIND_H

#include "stat/read.h"

enum { STAT_FINDINGS_MAX = 24 };

struct stat_finding {
    const char *code; /* "never-expires": for programs */
    uint64_t memory;  /* of the keys that it is about */
    char text[320];
    char advice[320];
};

/* Returns the number of findings, by memory, the largest first. */
size_t stat_find(const struct stat_read *read, struct stat_finding found[STAT_FINDINGS_MAX]);

#endif
