/* text_mode.h - restores a log whose line ends were changed by an editor, a transfer in text mode,
 * or a version control system.
 *
 *     switch (aof_text_mode_of(first_bytes)) {
 *     case AOF_TEXT_LF:   every CR LF became LF
 *     case AOF_TEXT_CRLF: every LF became CR LF, so that CR LF became CR CR LF
 *     }
 *     if (aof_text_restore(src, mode, sink, &res, &err))
 *         ... the sink holds the original log; res.doubtful commands are unchanged ...
 *
 * AOF_TEXT_CRLF is reversed exactly. With AOF_TEXT_LF the declared length of an argument shows how
 * many bytes are missing: as many as it has LFs (each was CR LF), or none (no LF was CR LF). If
 * neither or both are possible, it is unknown which LF was CR LF. Such a command is written
 * unchanged and stays damaged.
 */
#ifndef AOF_TEXT_MODE_H
#define AOF_TEXT_MODE_H

#include "aof/aof.h"
#include "base/sink.h"
#include "base/src.h"

/* Detects the mode from the first bytes of a file; AOF_TEXT_LOOK bytes are enough. */
enum { AOF_TEXT_LOOK = 512 };
enum aof_text_mode aof_text_mode_of(struct rd_slice first_bytes);

struct aof_text_result {
    uint64_t commands; /* restored */
    uint64_t doubtful; /* written unchanged */
    uint64_t bytes;    /* CRs that were inserted or removed */
};

/* Reads src from its beginning; it must be able to seek (AOF_TEXT_LF). The sink is not closed.
 * False: I/O. If the input stops being a log at some position, the remaining bytes are copied
 * unchanged. */
bool aof_text_restore(struct rd_src *src, enum aof_text_mode mode, struct rd_sink *sink,
                      struct aof_text_result *ret, struct rd_err *err);

#endif
