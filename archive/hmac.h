/* hmac.h - HMAC with SHA-256, which signs requests to stores; private to archive/.
 */
#ifndef ARCHIVE_HMAC_H
#define ARCHIVE_HMAC_H

#include "base/err.h"
#include "base/slice.h"

enum { ARCHIVE_HMAC = 32 };

/* `ret` may be the key. The errors are those of rd_digest_of(). Source: RFC 2104. */
bool archive_hmac(struct rd_slice key, struct rd_slice text, uint8_t ret[ARCHIVE_HMAC],
                  struct rd_err *err);

#endif
