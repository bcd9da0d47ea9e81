/* payload.h - how a snapshot is framed on a replication link.
 *
 *     $LENGTH CR LF  LENGTH bytes                  the master has it as a file
 *     $EOF:MARK CR LF  bytes  MARK                 it is made as it is sent; MARK is 40 bytes drawn
 *                                                  for this one transfer
 *
 * Neither has a line end after it. Whoever receives:
 *
 *     struct repl_payload p;
 *     if (!repl_payload_parse(&p, line, &err))           // the line without its end
 *         ...
 *     for (;;) {
 *         struct rd_slice piece;
 *         size_t used;
 *         status = repl_payload_take(&p, bytes, &piece, &used);
 *         ... piece is part of the snapshot; drop `used` bytes ...
 *         REPL_PAYLOAD_AT_END: what follows is the stream; REPL_PAYLOAD_WANTS: bring more bytes,
 * with those before them that were not used
 *     }
 *
 * Whoever sends writes the header of repl_payload_put(), the bytes, and the mark, if there is one.
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

/* A header line without its end. RD_ERR_CORRUPT without an offset where it is none;
 * RD_ERR_UNSUPPORTED for "$ENDOFF:", the second channel of Valkey 8. */
RD_API bool repl_payload_parse(struct repl_payload *p, struct rd_slice line, struct rd_err *err);

/* Writes the header with its line end; returns its length. */
RD_API size_t repl_payload_put(const struct repl_payload *p,
                               uint8_t dst[static REPL_PAYLOAD_HEADER_MAX]);

enum repl_payload_status { REPL_PAYLOAD_PIECE, REPL_PAYLOAD_WANTS, REPL_PAYLOAD_AT_END };

/* *ret is the part of the snapshot at the front of `bytes`, borrowed, and *ret_used how many bytes
 * are done with. PIECE: at least one byte of it; ask again. WANTS: the rest, fewer than 40 bytes,
 * may be the begin of the mark; nothing is used. AT_END: nothing of it is left, and the mark, which
 * is used, was seen where there is one. Time is linear in the bytes; a mark is found wherever
 * it stands. */
RD_API enum repl_payload_status repl_payload_take(struct repl_payload *p, struct rd_slice bytes,
                                                  struct rd_slice *ret, size_t *ret_used);

#endif
