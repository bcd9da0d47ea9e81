/* payload.h - the framing of a snapshot on a replication link.
 *
 *     $LENGTH CR LF  LENGTH bytes                  sent from a file
 *     $EOF:MARK CR LF  bytes  MARK                 streamed as it is created; MARK is 40
 *                                                  random bytes for this transfer
 *
 * No line end follows the snapshot in either form. The receiver:
 *
 *     struct repl_payload p;
 *     if (!repl_payload_parse(&p, line, &err))           // the line without its end
 *         ...
 *     for (;;) {
 *         struct rd_slice piece;
 *         size_t used;
 *         status = repl_payload_take(&p, bytes, &piece, &used);
 *         ... piece is part of the snapshot; drop `used` bytes ...
 *         REPL_PAYLOAD_AT_END: the stream follows
 *         REPL_PAYLOAD_WANTS:  pass the unused bytes again, with more bytes after them
 *     }
 *
 * The sender writes the header of repl_payload_put(), the bytes, and the mark, if any.
 */
#ifndef REPL_PAYLOAD_H
#define REPL_PAYLOAD_H

#include "base/api.h"
#include "base/err.h"
#include "base/slice.h"

enum { REPL_MARK_LEN = 40, REPL_PAYLOAD_HEADER_MAX = 5 + REPL_MARK_LEN + 2 };

struct repl_payload {
    bool by_mark;
    uint8_t mark[REPL_MARK_LEN];
    uint64_t len;  /* not by_mark: declared */
    uint64_t done; /* bytes taken */
};

/* Parses a header line without its end. RD_ERR_CORRUPT without an offset if it is invalid;
 * RD_ERR_UNSUPPORTED for "$ENDOFF:", the second channel of Valkey 8. */
RD_API bool repl_payload_parse(struct repl_payload *p, struct rd_slice line, struct rd_err *err);

/* Writes the header with its line end; returns its length. */
RD_API size_t repl_payload_put(const struct repl_payload *p,
                               uint8_t dst[static REPL_PAYLOAD_HEADER_MAX]);

enum repl_payload_status { REPL_PAYLOAD_PIECE, REPL_PAYLOAD_WANTS, REPL_PAYLOAD_AT_END };

/* *ret is the part of the snapshot at the start of `bytes`, borrowed; *ret_used is the number of
 * consumed bytes. PIECE: *ret has at least one byte; call again. WANTS: the remaining bytes, fewer
 * than 40, may be the start of the mark; nothing is consumed. AT_END: the snapshot has ended, and
 * the mark, if any, is consumed. Time is linear in the bytes; the mark may be split in any way. */
RD_API enum repl_payload_status repl_payload_take(struct repl_payload *p, struct rd_slice bytes,
                                                  struct rd_slice *ret, size_t *ret_used);

#endif
