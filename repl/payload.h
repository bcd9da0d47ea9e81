/* payload.h - the framing of a snapshot on a replication link.
 *
 *     $LENGTH CR LF  LENGTH bytes                  sent from a file
 *     $EOF:MARK CR LF  bytes  MARK                 streamed as it is created; MARK is 40
 *                                                  random bytes for this transfer
 *
 * No line end follows the snapshot in either form. The receiver.
 *
 * Example: receives a snapshot of five bytes.
 *
 *     struct rd_err err = {0};
 *     struct repl_payload p;
 *     struct rd_slice piece, bytes = rd_slice_str("REDIS*1");
 *     size_t used;
 *     if (!repl_payload_parse(&p, rd_slice_str("$5"), &err)) // the line without its end
 *         return 1;
 *     // REPL_PAYLOAD_WANTS: pass the unused bytes again, with more bytes after them
 *     while (repl_payload_take(&p, bytes, &piece, &used) == REPL_PAYLOAD_PIECE) {
 *         printf("%.*s\n", (int)piece.len, (const char *)piece.ptr);
 *         bytes = rd_slice(bytes.ptr + used, bytes.len - used);
 *     }
 *     // REPL_PAYLOAD_AT_END: the stream follows: "*1"
 *
 * The sender writes the header of repl_payload_put(), the bytes, and the mark, if any.
 *
 * Threads: one thread at a time uses a struct repl_payload; it has no shared state.
 * Ownership: a struct repl_payload owns nothing. Pieces are borrowed from the bytes that were
 *   passed.
 * Errors: only repl_payload_parse() fails.
 * Cost: linear in the bytes.
 */
#ifndef REPL_PAYLOAD_H
#define REPL_PAYLOAD_H

#include "base/api.h"
#include "base/err.h"
#include "base/slice.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { REPL_MARK_LEN = 40, REPL_PAYLOAD_HEADER_MAX = 5 + REPL_MARK_LEN + 2 };

/* Open: it owns nothing, and the protocol has no other fields. */
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
RD_API size_t repl_payload_put(const struct repl_payload *p, uint8_t dst[REPL_PAYLOAD_HEADER_MAX]);

enum repl_payload_status {
    REPL_PAYLOAD_PIECE = 0,
    REPL_PAYLOAD_WANTS = 1,
    REPL_PAYLOAD_AT_END = 2
};

/* *ret is the part of the snapshot at the start of `bytes`, borrowed; *ret_used is the number of
 * consumed bytes. PIECE: *ret has at least one byte; call again. WANTS: the remaining bytes, fewer
 * than 40, may be the start of the mark; nothing is consumed. AT_END: the snapshot has ended, and
 * the mark, if any, is consumed. Time is linear in the bytes; the mark may be split in any way. */
RD_API enum repl_payload_status repl_payload_take(struct repl_payload *p, struct rd_slice bytes,
                                                  struct rd_slice *ret, size_t *ret_used);

#ifdef __cplusplus
}
#endif

#endif
