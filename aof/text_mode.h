/* text_mode.h - a log whose line ends were changed: by an editor, a transfer in text mode, or a
 * version control system.
 *
 *     switch (aof_text_mode_of(first_bytes)) {
 *     case AOF_TEXT_LF:   every CR LF became LF
 *     case AOF_TEXT_CRLF: every LF became CR LF, so that CR LF became CR CR LF
 *     }
 *     if (aof_text_restore(src, mode, sink, &res, &err))
 *         ... the sink holds the log as it was; res.doubtful commands are left as they are ...
 *
 * AOF_TEXT_CRLF is undone exactly. With AOF_TEXT_LF the length of an argument says how many bytes
 * are missing: as many as it has LFs, and each was CR LF; or none, and no LF was. Where neither
 * fits, or both do, nobody can tell which LF was CR LF: such a command is written as it is, and
 * is damaged for whoever reads the result.
 */
#ifndef AOF_TEXT_MODE_H
#define AOF_TEXT_MODE_H

#include "aof/aof.h"
#include "base/sink.h"
#include "base/src.h"

enum aof_text_mode { AOF_TEXT_NONE, AOF_TEXT_LF, AOF_TEXT_CRLF };

/* What the first bytes of a file say; AOF_TEXT_LOOK are enough. */
enum { AOF_TEXT_LOOK = 512 };
RD_API enum aof_text_mode aof_text_mode_of(struct rd_slice first_bytes);

struct aof_text_result {
    uint64_t commands; /* restored */
    uint64_t doubtful; /* written as they are */
    uint64_t bytes;    /* CRs that were put back or taken out */
};

/* Reads src from its beginning; it must be able to seek (AOF_TEXT_LF). The sink is not closed.
 * False: I/O. What is not a log any more from some place on is copied as it is. */
RD_API bool aof_text_restore(struct rd_src *src, enum aof_text_mode mode, struct rd_sink *sink,
                             struct aof_text_result *ret, struct rd_err *err);

#endif
