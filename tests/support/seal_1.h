/* seal_1.h - objects as version 1 of the sealed format has them, which released programs wrote.
 * Made here from its description, not by base/seal.c, which writes the newest version only.
 */
#ifndef TESTS_SUPPORT_SEAL_1_H
#define TESTS_SUPPORT_SEAL_1_H

#include "base/buf.h"
#include "base/seal.h"

/* Appends an object of one frame with at most RD_SEAL_FRAME bytes. */
void seal_1(const struct rd_seal_key *key, const char *name, const char *text, struct rd_buf *ret);

#endif
