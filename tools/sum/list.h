/* list.h - the lines of checksum lists.
 *
 *     HEX  NAME                as sha256sum writes them; " *" for a file read as binary
 *     SHA256 (NAME) = HEX      as sha256sum --tag and the BSDs write them
 *
 * A line whose name holds a newline, a carriage return or a backslash begins with a backslash, and
 * has \n, \r and \\ in the name. The length of a digest determines its kind.
 */
#ifndef TOOLS_SUM_LIST_H
#define TOOLS_SUM_LIST_H

#include "base/buf.h"
#include "base/digest.h"

enum sum_kind { SUM_CRC16, SUM_CRC32, SUM_CRC64, SUM_SHA1, SUM_SHA256, SUM_SHA512, SUM_KINDS };

size_t sum_kind_size(enum sum_kind kind);      /* bytes of a digest */
const char *sum_kind_name(enum sum_kind kind); /* "sha256" */

/* Of the kinds from SUM_SHA1 on. */
enum rd_digest_kind sum_kind_digest(enum sum_kind kind);

struct sum_line {
    enum sum_kind kind;
    uint8_t digest[RD_DIGEST_MAX];
    struct rd_buf name; /* with a terminator that len does not count; see sum_line_done() */
};

/* Reads a line without its end. True: it is a digest's, and *line holds it; the name's buffer is
 * used again. False: it is not well formed, or memory is short. */
bool sum_line_parse(struct sum_line *line, struct rd_slice text);
void sum_line_done(struct sum_line *line);

/* Appends the name with newline, carriage return and backslash escaped. */
bool sum_name_escape(struct rd_buf *to, const char *name);

#endif
