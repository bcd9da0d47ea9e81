/* sink_impl.h - the state of a sink. Not installed.
 */
#ifndef BASE_SINK_IMPL_H
#define BASE_SINK_IMPL_H

#include "base/sink.h"

/* Computes the checksum in place of the sink. The sink passes on all bytes before it asks. */
struct rd_sink_summer {
    void (*begin)(void *impl, uint64_t crc);
    uint64_t (*sum)(void *impl);
};

struct rd_sink_state {
    uint8_t *summed; /* bytes of the buffer before this one are in `crc` */
    uint64_t crc;
    bool sum;
    const struct rd_sink_ops *ops;
    const struct rd_sink_summer *summer; /* NULL: the sink computes it */
    void *impl;
    struct rd_err err;
    char origin[RD_ERR_TEXT_MAX];
};

#endif
