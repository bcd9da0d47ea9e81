#include "chunks/bytes_impl.h"

bool chunks_put(struct rd_buf *out, uint64_t number)
{
    uint8_t bytes[10];
    size_t n = 0;
    for (; number >= 0x80; number >>= 7)
        bytes[n++] = (uint8_t)(number | 0x80);
    bytes[n++] = (uint8_t)number;
    return rd_buf_add(out, bytes, n);
}

bool chunks_put_signed(struct rd_buf *out, int64_t number)
{
    uint64_t twice = (uint64_t)number << 1;
    return chunks_put(out, number < 0 ? ~twice : twice);
}

bool chunks_put_u64(struct rd_buf *out, uint64_t number)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(number >> (8 * i));
    return rd_buf_add(out, bytes, sizeof bytes);
}

struct chunks_in chunks_in_of(struct rd_slice bytes)
{
    return (struct chunks_in){.at = bytes.ptr, .end = bytes.ptr + bytes.len};
}

size_t chunks_left(const struct chunks_in *in)
{
    return (size_t)(in->end - in->at);
}

static uint64_t fail(struct chunks_in *in)
{
    in->failed = true;
    in->at = in->end;
    return 0;
}

uint64_t chunks_get(struct chunks_in *in)
{
    uint64_t number = 0;
    for (unsigned shift = 0; in->at < in->end && shift < 64; shift += 7) {
        uint8_t byte = *in->at++;
        if (shift == 63 && byte > 1)
            return fail(in);
        number |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return number;
    }
    return fail(in);
}

uint64_t chunks_get_max(struct chunks_in *in, uint64_t max)
{
    uint64_t number = chunks_get(in);
    return number <= max ? number : fail(in);
}

int64_t chunks_get_signed(struct chunks_in *in)
{
    uint64_t twice = chunks_get(in);
    return (int64_t)((twice & 1) != 0 ? ~(twice >> 1) : twice >> 1);
}

const uint8_t *chunks_get_bytes(struct chunks_in *in, size_t len)
{
    if (len > chunks_left(in)) {
        fail(in);
        return NULL;
    }
    const uint8_t *bytes = in->at;
    in->at += len;
    return bytes;
}

uint64_t chunks_get_u64(struct chunks_in *in)
{
    const uint8_t *bytes = chunks_get_bytes(in, 8);
    uint64_t number = 0;
    for (int i = 0; bytes != NULL && i < 8; i++)
        number |= (uint64_t)bytes[i] << (8 * i);
    return number;
}

size_t chunks_get_count(struct chunks_in *in, size_t least)
{
    return (size_t)chunks_get_max(in, chunks_left(in) / (least > 0 ? least : 1));
}
